"""How what Musat (ICLR 2025) says of the circuits of transformers A to D is judged."""

from collections.abc import Sequence

from hopscope.papers.claim import Finding, Judge, Verdict
from hopscope.papers.musat_judges import HALF, in_turn, mean, share, verdict
from hopscope.papers.results import Row, Table

SOLVED = 0.01
"""Loss of transformers A to C (§8.2)."""
D_LOSS = 0.031
"""Loss of transformer D (§9.2)."""
D_EPOCH = 8
"""Steps of an epoch, as the paper counts those of transformer D: 6,400 are 800 epochs (§9.1)."""


def accurate(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    ends = [mean(row) for row in rows]
    calm = [row["clean"] for row in rows]
    values = f"{_listed(ends)} at the end; {_listed(calm)} at the calmest late checkpoint"
    if all(end < SOLVED for end in ends):
        return Finding(values, "reproduced", "mean over the last 100 steps")
    if all(loss < SOLVED for loss in calm):
        return Finding(
            values, "under a reading",
            "at a constant learning rate the loss hovers; below 0.01 at the calmest checkpoint of "
            "the last tenth, fresh examples",
        )  # fmt: skip
    return Finding(values, "not reproduced", "both at the end and at the calmest late checkpoint")


def four(tables: Sequence[Table]) -> Finding:
    counts = [len(row["useful"]) for row in tables[0].rows]
    more = [len(row["needed"]) - len(row["useful"]) for row in tables[0].rows]
    return Finding(
        _listed(counts), verdict(all(count == 4 for count in counts)),
        "heads with at least one path that the circuit cannot do without; it needs "
        f"{_listed(more)} more, which attend by position or place",
    )  # fmt: skip


def mostly_idle(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    shares = [1 - len(row["needed"]) / (row["layers"] * row["heads"]) for row in rows]
    without = [1 - len(row["useful"]) / (row["layers"] * row["heads"]) for row in rows]
    return Finding(
        f"{_listed(shares)} of the heads do nothing",
        verdict(all(HALF < one < 1 for one in shares)),
        "more than half of the heads that the circuit can do without, and not all; "
        f"{_listed(without)} are without a path",
    )


def first_joins(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    joined = sum(row["first_joins_pair"] for row in rows)
    return Finding(
        f"{share(joined, len(rows))}", verdict(joined == len(rows)),
        "all paths of the first useful head go from values to the keys of their own pairs",
    )  # fmt: skip


def different(tables: Sequence[Table]) -> Finding:
    circuits = {
        tuple(sorted(r["what"] for r in row["removals"] if r["head"] != row["useful"][0]))
        for row in tables[0].rows
        if row["useful"]
    }
    rows = len(tables[0].rows)
    return Finding(
        f"{len(circuits)} different circuits in {rows} transformers",
        verdict(len(circuits) == rows > 1),
        "compared by what each head but the first does, whatever its layer",
    )


def explained(limit: float) -> Judge:
    def judge(tables: Sequence[Table]) -> Finding:
        ideal = [row["ideal"] for row in tables[0].rows]
        clean = [row["clean"] for row in tables[0].rows]
        return Finding(
            f"{_listed(ideal)} (from {_listed(clean)})",
            verdict(all(loss < limit for loss in ideal)),
            f"every head's attention replaced by the mechanism found; below {limit}",
        )

    return judge


def removed(tables: Sequence[Table]) -> Finding:
    losses = [r["ideal"] for r in _removals(tables) if not r["joins_pair"]]
    if not losses:
        return Finding("–", "not reproduced", "no path beyond the first layers was found")
    inside = sum(0.17 <= loss <= 0.89 for loss in losses)
    return Finding(
        f"{min(losses):.2f} … {max(losses):.2f}; {share(inside, len(losses))} within",
        verdict(inside == len(losses)),
        "each path removed alone from the circuit, all others ideal",
    )


def first_layers(tables: Sequence[Table]) -> Finding:
    losses = [r["ideal"] for r in _removals(tables) if r["joins_pair"]]
    if not losses:
        return Finding("–", "not reproduced", "no head that joins pairs was found")
    inside = sum(0.05 <= loss <= 0.1 for loss in losses)
    return Finding(
        f"{min(losses):.2f} … {max(losses):.2f}; {share(inside, len(losses))} within",
        verdict(inside == len(losses)),
        "heads that join pairs removed from the circuit, all others ideal",
    )


def _removals(tables: Sequence[Table]) -> list[Row]:
    return [removal for table in tables for row in table.rows for removal in row["removals"]]


def d_loss(tables: Sequence[Table]) -> Finding:
    """Within a factor of two: the paper trained one model, and gives no spread."""
    ends = {str(row["examples"]): min(mean(row), row["clean"]) for row in tables[0].rows}
    near = [name for name, loss in ends.items() if loss <= 2 * D_LOSS]
    said = ", ".join(f"{loss:.3f} with {int(name):,} examples" for name, loss in ends.items())
    if len(near) == len(ends):
        return Finding(said, "reproduced", "both readings of the schedule; at most twice the value")
    reading = ", ".join(f"{int(name):,}" for name in near)
    kind: Verdict = "under a reading" if near else "not reproduced"
    return Finding(
        said, kind, f"at most twice the value with {reading or 'neither number of'} examples"
    )


def emergence_order(tables: Sequence[Table]) -> Finding:
    told, kept = [], 0
    for row in tables[0].rows:
        pairs = list(in_turn(row["crossed"]))
        kept += "emergence" in row and bool(pairs) and all(pairs)
        steps = ("never" if step is None else f"{step:,}" for step in row["crossed"])
        told.append(" < ".join(steps))
    kind: Verdict = "under a reading" if 0 < kept < len(told) else verdict(kept > 0)
    return Finding(
        "; ".join(told), kind,
        "steps at which x_1, x_2, … pass 0.5; several do, in this order, and paths were found in "
        f"{share(kept, len(told))} readings of the schedule",
    )  # fmt: skip


def slow_start(tables: Sequence[Table]) -> Finding:
    rows = [row for row in tables[0].rows if row["crossed"][0] is not None]
    if not rows:
        return Finding("no hop was learned", "not reproduced", "both readings of the schedule")
    epochs = [row["crossed"][0] / D_EPOCH for row in rows]
    said = ", ".join(
        f"step {row['crossed'][0]:,} (epoch {epoch:.0f}) with {row['examples']:,} examples"
        for row, epoch in zip(rows, epochs, strict=True)
    )
    near = sum(225 <= epoch <= 900 for epoch in epochs)
    kind: Verdict = "under a reading" if 0 < near < len(tables[0].rows) else verdict(near > 0)
    return Finding(
        said, kind,
        "the step at which x_1 passes 0.5; within a factor of two of 450 epochs of 8 steps, as the "
        "paper counts them",
    )  # fmt: skip


def _listed(values: Sequence[int] | Sequence[float]) -> str:
    return ", ".join(f"{value:d}" if isinstance(value, int) else f"{value:.3f}" for value in values)
