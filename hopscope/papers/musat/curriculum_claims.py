"""What Musat (ICLR 2025) says of curriculum and depth in training, and how it is judged."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hopscope.papers.claim import Claim, Finding, share, share_drawn, verdict
from hopscope.papers.musat.rows import LossRow, longest
from hopscope.papers.table import Table
from hopscope.theory.chain import reach

LEARNED = 0.5
"""A final loss below which a hop counts as learned, as in the paper."""
CHANCE = 0.02
"""What a loss on the plateau moves by chance."""
WITH, WITHOUT = "musat/fig4-seeds", "musat/fig4-nonic-seeds"
"""More seeds of figure 4, with curriculum and without; their rows count as they come."""


def rows_of(tables: Sequence[Table]) -> list[LossRow]:
    """The models of all tables, each once."""
    return longest(row for table in tables for row in table.of(LossRow))


def not_outdone(tables: Sequence[Table]) -> list[Table]:
    """The tables without those whose models were all trained longer, for another of them."""
    kept = [id(row) for row in rows_of(tables)]
    return [table for table in tables if any(id(row) in kept for row in table.of(LossRow))]


def models(rows: Sequence[LossRow]) -> str:
    """How many models there are, and of which depths how many."""
    depths = Counter(row.layers for row in rows)
    told = []
    for count in sorted(set(depths.values()), reverse=True):
        alike = [str(depth) for depth in sorted(depths) if depths[depth] == count]
        told.append(f"{count} {'each ' * (len(alike) > 1)}of {', '.join(alike)} layers")
    return f"{len(rows)} models: {', '.join(told)}"


def too_little(tables: Sequence[Table]) -> Finding | None:
    """If no model learned a hop in less training than the paper's, that says nothing about what is
    learned; None otherwise.
    """
    short = any(table.protocol != "full" for table in tables)
    if not short or any(row.curriculum and hops_of(row) for row in rows_of(tables)):
        return None
    return Finding("–", "not measured", "no model learned a hop, in less training than the paper's")


def never(tables: Sequence[Table]) -> Finding:
    """Judge whether every run without curriculum ends with a loss above 0.7."""
    rows = rows_of(tables)
    lost = [row for row in rows if row.loss > 0.7]
    return Finding(
        f"{share_drawn(len(lost), len(rows), 'models')}; lowest "
        f"{min(row.loss for row in rows):.3f}",
        verdict(len(lost) == len(rows)),
        models(rows),
    )


def essential(tables: Sequence[Table]) -> Finding:
    """Judge whether the lowest final loss is below LEARNED with curriculum, and not without."""
    if nothing := too_little(tables):
        return nothing
    rows = rows_of(tables)
    with_, without = (
        min(row.loss for row in rows if row.curriculum is curriculum)
        for curriculum in (True, False)
    )
    return Finding(
        f"best loss {with_:.3f} with, {without:.3f} without",
        verdict(with_ < LEARNED < without),
        "lowest final loss over all depths (D = 5 with, D = 3 without); with: "
        f"{models([row for row in rows if row.curriculum])}; without: "
        f"{models([row for row in rows if not row.curriculum])}",
    )


def later_harder(tables: Sequence[Table]) -> Finding:
    """Judge whether the final losses of no depth fall with the hop, and those of one at least rise,
    by more than chance.
    """
    if nothing := too_little(tables):
        return nothing
    depths: dict[int, list[list[float]]] = {}
    for row in rows_of(tables):
        depths.setdefault(row.layers, []).append([min(x, row.guess) for x in row.final])
    means = [[sum(hop) / len(hop) for hop in zip(*rows, strict=True)] for rows in depths.values()]
    falls = sum(any(a > b + CHANCE for a, b in pairwise(losses)) for losses in means)
    rises = sum(losses[0] + CHANCE < losses[-1] for losses in means)
    return Finding(
        f"losses rise with the hop at {share(rises, len(means))} depths, and fall at {falls}",
        verdict(rises > 0 and falls == 0),
        "means over the seeds of each depth, none taken above guessing; by more than "
        f"{CHANCE}, which a loss on the plateau moves by chance; {models(rows_of(tables))}",
    )


def more_layers(tables: Sequence[Table]) -> Finding:
    """Judge whether later hops need more layers: the fewest with which any seed learns a hop."""
    if nothing := too_little(tables):
        return nothing
    rows = rows_of(tables)
    fewest = [
        min((row.layers for row in rows if row.final[hop] < LEARNED), default=None)
        for hop in range(len(rows[0].final))
    ]
    needed = ", ".join("–" if depth is None else str(depth) for depth in fewest)
    learned = [depth for depth in fewest if depth is not None]
    apart = len(learned) > 1 and learned[0] < learned[-1]
    return Finding(
        f"fewest layers that learn x₁, x₂, …: {needed}; hops learned by 1, 2, … layers: "
        + ", ".join(map(str, _learned(rows))),
        verdict(apart and all(in_turn(fewest))),
        "final losses below 0.5, of the best seed of a depth; the fewest layers rise with the hop; "
        f"{models(rows)}",
    )


def _learned(rows: Sequence[LossRow]) -> list[int]:
    """How many hops the best seed of each depth learns."""
    counts: dict[int, int] = {}
    for row in rows:
        count = sum(loss < LEARNED for loss in row.final)
        counts[row.layers] = max(count, counts.get(row.layers, 0))
    return [counts[depth] for depth in sorted(counts)]


def in_order(tables: Sequence[Table]) -> Finding:
    """Judge whether in every run each hop that is learned is learned no earlier than the one before
    it.
    """
    rows = rows_of(tables)
    told = [turns for row in rows if (turns := list(in_turn(row.crossed)))]
    if not told:
        return Finding("–", "not measured", f"none of {models(rows)} learned a hop behind x₁")
    kept = sum(map(all, told))
    return Finding(
        f"{share_drawn(kept, len(told), 'models')} that learned a hop behind x₁, of {len(rows)}",
        verdict(kept == len(told)),
        f"the step at which the mean of ten training losses falls below 0.5; {models(rows)}",
    )


def in_turn(crossed: Sequence[int | None]) -> Iterator[bool]:
    """Did each hop that was learned come after the one before it?"""
    for earlier, later in pairwise(crossed):
        if later is not None:
            yield earlier is not None and earlier <= later


def hops_of(row: LossRow) -> int:
    """The last hop that a model ends with knowing; 0 if it knows none."""
    losses = zip(row.asked, row.final, strict=True)
    return max((hop for hop, loss in losses if loss < LEARNED), default=0)


def allowed(row: LossRow) -> int:
    """The hops that a model of this depth can know at most, of those that are asked."""
    return min(reach(row.layers), row.asked[-1])


def within_the_law(tables: Sequence[Table]) -> Finding:
    """Judge whether no model knows a hop in the end that its depth does not allow."""
    rows = rows_of(tables)
    beaten = sum(hops_of(row) > allowed(row) for row in rows)
    shallow = [row for row in rows if allowed(row) < row.asked[-1]]
    deep = [row for row in rows if allowed(row) > 0]
    met = sum(hops_of(row) == allowed(row) for row in deep)
    if not any(map(hops_of, rows)):
        return Finding("–", "not measured", f"no model learned a hop; {models(rows)}")
    return Finding(
        f"beaten by {share_drawn(beaten, len(shallow), 'that could')}; met by "
        f"{share_drawn(met, len(deep), 'that may learn a hop')}",
        verdict(beaten == 0),
        "the last hop with a final loss below 0.5, beside the most that causal attention of that "
        "depth can follow; a model could beat it if it is asked for more hops than that; "
        f"{models(rows)}",
    )


CLAIMS = (
    Claim(
        "musat/nonic-above-0.7", "Without curriculum no transformer learns, whatever its depth.",
        "§7.2", "100 % of 64 runs above 0.7", "final validation loss of every run",
        ("musat/fig4-nonic",), never, only_full=True, beside=(WITHOUT,), counting=not_outdone,
    ),
    Claim(
        "musat/ic-essential", "The implicit curriculum makes learning possible.", "§7.2, figure 4",
        "learned with, not without", "the lowest final loss below 0.5 with and above it without",
        ("musat/fig4-ic", "musat/fig4-nonic"), essential, only_full=True, beside=(WITH, WITHOUT),
        counting=not_outdone,
    ),
    Claim(
        "musat/later-harder", "Later symbols of a chain are harder.", "§7.2, figure 4 right",
        "partial losses rise along the chain", "final partial losses in order, at every depth",
        ("musat/fig4-ic",), later_harder, only_full=True, beside=(WITH,), counting=not_outdone,
    ),
    Claim(
        "musat/later-deeper", "Later symbols of a chain need more layers.", "§7.2, figure 4 right",
        "deeper models learn more hops", "the fewest layers with a final loss below 0.5, by hop",
        ("musat/fig4-ic",), more_layers, only_full=True, beside=(WITH,), counting=not_outdone,
    ),
    Claim(
        "musat/depth-law", "No transformer learns more hops than its depth allows.",
        "theorem 1; the exact law is ours", "log3(2D) layers or more for D hops",
        "the last hop learned, at most 2^(layers − 1) − 1", ("musat/fig4-ic",), within_the_law,
        only_full=True, beside=(WITH,), counting=not_outdone,
    ),
    Claim(
        "musat/depth-law-small", "No small model of ours learns more hops than its depth allows.",
        "theorem 1; law and models are ours", "log3(2D) layers or more for D hops",
        "the last hop learned, at most 2^(layers − 1) − 1", ("musat/depth-small",), within_the_law,
    ),
    Claim(
        "musat/hops-in-order", "With curriculum every model learns x₁ first, then x₂, and so on.",
        "§7.2", "100 % of 64 runs", "training losses pass 0.5 in the order of the hops",
        ("musat/fig4-ic",), in_order, only_full=True, beside=(WITH,), counting=not_outdone,
    ),
    Claim(
        "musat/hops-in-order-small", "Small models of ours learn x₁ first, then x₂, and so on.",
        "§7.2; the models are ours", "100 % of 64 runs, of others",
        "training losses pass 0.5 in the order of the hops", ("musat/order",), in_order,
    ),
)  # fmt: skip
