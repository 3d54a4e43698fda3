"""How what Musat (ICLR 2025) says of depth, curriculum and language models is judged."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hopscope.papers.claim import Finding, Verdict
from hopscope.papers.results import Row, Table

HALF = 0.5
ALMOST_PERFECT = 0.9


def verdict(holds: bool) -> Verdict:
    return "reproduced" if holds else "not reproduced"


def share(right: int, count: int) -> str:
    return f"{right} of {count}"


def mean(row: Row) -> float:
    return sum(row["final"]) / len(row["final"])


def bound(tables: Sequence[Table]) -> Finding:
    rows = [row for row in tables[0].rows if "hops" in row]
    if not rows:
        return Finding("–", "not measured", "no number of hops was simulated")
    below = [row["hops"] for row in rows if row["simulated"]["bidirectional"] < row["theorem_1"]]
    tight = sum(row["bidirectional"] == row["theorem_1"] for row in rows)
    agree = all(
        row["simulated"][kind] == row[kind] for row in rows for kind in ("bidirectional", "causal")
    )
    return Finding(
        f"holds for {len(rows) - len(below)} of {len(rows)} D; it is the exact minimum for {tight}",
        verdict(not below and agree),
        f"simulation and closed form for D = 1 … {rows[-1]['hops']}",
    )


def enough(tables: Sequence[Table]) -> Finding:
    rows = [row for row in tables[0].rows if "planted" in row]
    three = next((row for row in rows if row["planted"] == 3), None)
    if three is None:
        return Finding("–", "not measured", "no planted transformer of 3 hops")
    used = three["layers"] * three["heads"]
    return Finding(
        f"{used} heads solve D = 3 with an error of {three['error']:.0e}",
        verdict(used == 3 and three["error"] < 1e-6),
        "weights written by hand, without MLP and norm, for symbols that are unit vectors of 64 "
        "numbers; 64 fresh examples",
    )


def never(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    lost = [row for row in rows if mean(row) > 0.7]
    return Finding(
        f"{share(len(lost), len(rows))}; lowest {min(map(mean, rows)):.3f}",
        verdict(len(lost) == len(rows)),
        f"{len(rows)} models of 1 to {max(row['layers'] for row in rows)} layers",
    )


def essential(tables: Sequence[Table]) -> Finding:
    with_, without = (min(map(mean, table.rows)) for table in tables)
    return Finding(
        f"best loss {with_:.3f} with, {without:.3f} without",
        verdict(with_ < HALF < without),
        "lowest final loss over all depths (D = 5 with, D = 3 without)",
    )


def later_harder(tables: Sequence[Table]) -> Finding:
    depths: dict[int, list[list[float]]] = {}
    for row in tables[0].rows:
        depths.setdefault(row["layers"], []).append([min(x, row["guess"]) for x in row["final"]])
    means = [[sum(hop) / len(hop) for hop in zip(*rows, strict=True)] for rows in depths.values()]
    rising = [all(a <= b + 0.02 for a, b in pairwise(losses)) for losses in means]
    apart = any(losses[0] + 0.02 < losses[-1] for losses in means)
    return Finding(
        f"losses rise with the hop at {share(sum(rising), len(means))} depths",
        verdict(all(rising) and apart),
        "means over the seeds of each depth, none taken above guessing; up to 0.02, which a loss "
        "on the plateau moves by chance",
    )


def more_layers(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    fewest = [
        min((row["layers"] for row in rows if row["final"][hop] < HALF), default=None)
        for hop in range(len(rows[0]["final"]))
    ]
    needed = ", ".join("–" if depth is None else str(depth) for depth in fewest)
    learned = [depth for depth in fewest if depth is not None]
    apart = len(learned) > 1 and learned[0] < learned[-1]
    return Finding(
        f"fewest layers that learn x_1, x_2, …: {needed}; hops learned by 1, 2, … layers: "
        + ", ".join(map(str, _learned(rows))),
        verdict(apart and all(in_turn(fewest))),
        "final losses below 0.5, of the best seed of a depth; the fewest layers rise with the hop",
    )


def _learned(rows: Sequence[Row]) -> list[int]:
    """How many hops the best seed of each depth learns."""
    counts: dict[int, int] = {}
    for row in rows:
        count = sum(loss < HALF for loss in row["final"])
        counts[row["layers"]] = max(count, counts.get(row["layers"], 0))
    return [counts[depth] for depth in sorted(counts)]


def in_order(tables: Sequence[Table]) -> Finding:
    rows = [row for table in tables for row in table.rows]
    pairs = [list(in_turn(row["crossed"])) for row in rows]
    kept = [all(pair) for pair in pairs]
    told = sum(len(pair) > 0 for pair in pairs)
    return Finding(
        f"{share(sum(kept), len(rows))} runs; {told} of them passed 0.5 at more than one hop",
        verdict(all(kept) and told > 0),
        "the step at which the mean of ten training losses falls below 0.5",
    )


def in_turn(crossed: Sequence[int | None]) -> Iterator[bool]:
    """Did each hop that was learned come after the one before it?"""
    for earlier, later in pairwise(crossed):
        if later is not None:
            yield earlier is not None and earlier <= later


def solve(tables: Sequence[Table]) -> Finding:
    rows = [row for row in tables[0].rows if row["kind"].startswith("equations")]
    if not rows:
        return Finding("–", "not measured", "no equations were asked")
    said, able = [], []
    for name, own in _by_model(rows).items():
        right, best = ([row[field] for row in own] for field in ("accuracy", "best"))
        said.append(
            f"{name} {min(right):.2f} … {max(right):.2f} (likeliest answer {min(best):.2f} … "
            f"{max(best):.2f})"
        )
        able += [name] * (min(right) >= ALMOST_PERFECT)
    return Finding(
        "; ".join(said), "under a reading" if able else "not reproduced",
        "equations of 1 to 5 hops, probability of the right answer among the acceptable ones; "
        f"at least {ALMOST_PERFECT} at every D by {', '.join(able) or 'none'}; the paper's models "
        "are larger by far",
    )  # fmt: skip


def _by_model(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """What each model was asked; with the answer opened (ours) it counts as another."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        name = f"{row['model']}{' (opened)' * row['kind'].endswith('opened')}"
        found.setdefault(name, []).append(row)
    return found


def above_guessing(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    above = {
        name: [row["interval"][0] > row["guessing"] for row in own]
        for name, own in sorted(_by_model(rows).items())
    }
    said = [f"{name} {share(sum(kinds), len(kinds))}" for name, kinds in above.items()]
    return Finding(
        "; ".join(said), verdict(any(map(all, above.values()))),
        "kinds of questions answered better than by guessing (95 % interval); all five "
        "formulations by at least one model",
    )  # fmt: skip
