"""What Musat (ICLR 2025) says of the number of layers, and how it is judged."""

from collections.abc import Sequence

from hopscope.papers.claim import Claim, Finding, verdict
from hopscope.papers.musat.rows import DepthRow, PlantedRow
from hopscope.papers.table import Table


def bound(tables: Sequence[Table]) -> Finding:
    """Judge whether the exact minimum of layers is never below theorem 1, and simulation agrees
    with the closed form.
    """
    rows = tables[0].of(DepthRow)
    if not rows:
        return Finding("–", "not measured", "no number of hops was simulated")
    below = [row.hops for row in rows if row.simulated.bidirectional < row.theorem_1]
    tight = sum(row.bidirectional == row.theorem_1 for row in rows)
    agree = all(
        (row.simulated.bidirectional, row.simulated.causal) == (row.bidirectional, row.causal)
        for row in rows
    )
    return Finding(
        f"holds for {len(rows) - len(below)} of {len(rows)} D; it is the exact minimum for {tight}",
        verdict(not below and agree),
        f"simulation and closed form for D = 1 … {rows[-1].hops}",
    )


def enough(tables: Sequence[Table]) -> Finding:
    """Judge whether a planted transformer with three heads in all solves three hops, with an error
    below 1e-6.
    """
    rows = tables[0].of(PlantedRow)
    three = next((row for row in rows if row.planted == 3), None)
    if three is None:
        return Finding("–", "not measured", "no planted transformer of 3 hops")
    used = three.layers * three.heads
    return Finding(
        f"{used} heads solve D = 3 with an error of {three.error:.0e}",
        verdict(used == 3 and three.error < 1e-6),
        "weights written by hand, without MLP and norm, for symbols that are unit vectors of 64 "
        "numbers; 64 fresh examples",
    )


CLAIMS = (
    Claim(
        "musat/theorem-1", "D hops need at least log3(2D) layers.", "theorem 1, appendix B",
        "t ≥ log3(2D)", "the exact minimum under the theorem's assumptions is never below",
        ("musat/depth",), bound,
    ),
    Claim(
        "musat/three-heads-suffice", "Three heads would be enough for D = 3.", "§8.2",
        "3", "a transformer with weights written by hand, error below 1e-6",
        ("musat/depth",), enough,
    ),
)  # fmt: skip
