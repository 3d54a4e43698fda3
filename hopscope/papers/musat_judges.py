"""How the claims of Musat (ICLR 2025) are judged from what was measured."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hopscope.papers.claim import Finding, Judge, Verdict
from hopscope.papers.results import Row, Table

HALF = 0.5
SOLVED = 0.01
"""Loss of transformers A to C (§8.2)."""
ALMOST_PERFECT = 0.9
D_EPOCH = 8
"""Steps of an epoch, as the paper counts those of transformer D: 6,400 are 800 epochs (§9.1)."""


def verdict(holds: bool) -> Verdict:
    return "reproduced" if holds else "not reproduced"


def share(right: int, count: int) -> str:
    return f"{right} of {count}"


def _mean(row: Row) -> float:
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
        "weights written by hand, 64 fresh examples",
    )


def never(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    lost = [row for row in rows if _mean(row) > 0.7]
    return Finding(
        f"{share(len(lost), len(rows))}; lowest {min(map(_mean, rows)):.3f}",
        verdict(len(lost) == len(rows)),
        f"{len(rows)} models of 1 to {max(row['layers'] for row in rows)} layers",
    )


def essential(tables: Sequence[Table]) -> Finding:
    with_, without = (min(map(_mean, table.rows)) for table in tables)
    return Finding(
        f"best loss {with_:.3f} with, {without:.3f} without",
        verdict(with_ < HALF < without),
        "lowest final loss over all depths (D = 5 with, D = 3 without)",
    )


def later_harder(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    ordered = [
        row for row in rows
        if all(a <= b + 0.02 for a, b in pairwise(row["final"]))
    ]  # fmt: skip
    apart = any(row["final"][0] + 0.02 < row["final"][-1] for row in rows)
    return Finding(
        f"{share(len(ordered), len(rows))} models have losses that rise with the hop",
        verdict(len(ordered) == len(rows) and apart),
        "up to 0.02, which a loss on the plateau moves by chance",
    )


def more_layers(tables: Sequence[Table]) -> Finding:
    learned: dict[int, int] = {}
    for row in tables[0].rows:
        count = sum(loss < HALF for loss in row["final"])
        learned[row["layers"]] = max(count, learned.get(row["layers"], 0))
    depths = sorted(learned)
    counts = [learned[depth] for depth in depths]
    rising = all(a <= b for a, b in pairwise(counts))
    return Finding(
        "hops learned by 1, 2, … layers: " + ", ".join(map(str, counts)),
        verdict(rising and counts[-1] > counts[0]),
        "a hop is learned if its final loss is below 0.5 in the best seed; each depth at least as "
        "many as the one before",
    )


def in_order(tables: Sequence[Table]) -> Finding:
    rows = [row for table in tables for row in table.rows]
    pairs = [list(_pairs(row["crossed"])) for row in rows]
    kept = [all(pair) for pair in pairs]
    told = sum(len(pair) > 0 for pair in pairs)
    return Finding(
        f"{share(sum(kept), len(rows))} runs; {told} of them passed 0.5 at more than one hop",
        verdict(all(kept) and told > 0),
        "the step at which the mean of ten training losses falls below 0.5",
    )


def _pairs(crossed: Sequence[int | None]) -> Iterator[bool]:
    """Did each hop that was learned come after the one before it?"""
    for earlier, later in pairwise(crossed):
        if later is not None:
            yield earlier is not None and earlier <= later


def accurate(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    ends = [_mean(row) for row in rows]
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
    ends = {str(row["examples"]): min(_mean(row), row["clean"]) for row in tables[0].rows}
    near = [name for name, loss in ends.items() if loss <= 2 * 0.031]
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
        pairs = list(_pairs(row["crossed"]))
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


def solve(tables: Sequence[Table]) -> Finding:
    rows = [row for row in tables[0].rows if row["kind"].startswith("equations")]
    if not rows:
        return Finding("–", "not measured", "no equations were asked")
    best: dict[str, list[float]] = {}
    for row in rows:
        name = f"{row['model']}{' (opened)' * row['kind'].endswith('opened')}"
        best.setdefault(name, []).append(row["best"])
    said = "; ".join(f"{name} {min(v):.2f} … {max(v):.2f}" for name, v in best.items())
    able = [name for name, values in best.items() if min(values) >= ALMOST_PERFECT]
    return Finding(
        said, "under a reading" if able else "not reproduced",
        "equations of 1 to 5 hops, share of questions whose likeliest acceptable answer is right; "
        f"at least {ALMOST_PERFECT} at every D by {', '.join(able) or 'none'}; the paper's models "
        "are larger by far",
    )  # fmt: skip


def above_guessing(tables: Sequence[Table]) -> Finding:
    rows = tables[0].rows
    above = [row for row in rows if row["interval"][0] > row["guessing"]]
    models = sorted({row["model"] for row in rows})
    said = []
    for model in models:
        own = [row for row in rows if row["model"] == model]
        said.append(f"{model} {sum(row in above for row in own)} of {len(own)}")
    able = any(all(row in above for row in rows if row["model"] == model) for model in models)
    return Finding(
        "; ".join(said), "reproduced" if able else "not reproduced",
        "kinds of questions answered better than by guessing (95 % interval); all five "
        "formulations by at least one model",
    )  # fmt: skip


def _listed(values: Sequence[int] | Sequence[float]) -> str:
    return ", ".join(f"{value:d}" if isinstance(value, int) else f"{value:.3f}" for value in values)
