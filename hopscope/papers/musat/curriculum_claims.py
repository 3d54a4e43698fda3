"""The claims of Musat (ICLR 2025) about depth and curriculum, in theory and in training."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from hopscope.papers.claim import Claim
from hopscope.papers.judge import Judge, group, out_of
from hopscope.papers.musat.rows import DepthRow, LossRow, PlantedRow, longest
from hopscope.theory.chain import reach

LEARNED_LOSS = 0.5
"""A hop with a final loss below this counts as learned, as in the paper."""
CHANCE = 0.02
"""Random variation of a loss on the plateau."""
STEPS = 10_000
"""The paper's number of steps (§7.1)."""
EXACT = "an exact statement, which no seed changes"

theorem_1 = Judge(
    DepthRow,
    lambda row: (
        row.simulated.bidirectional >= row.theorem_1
        and (row.simulated.bidirectional, row.simulated.causal) == (row.bidirectional, row.causal)
    ),
    lambda rows: (
        f"D = 1 … {rows[-1].hops}; the bound is the exact minimum for "
        f"{sum(row.bidirectional == row.theorem_1 for row in rows)} of them"
    ),
    who=lambda row: row.hops,
    no_seeds=EXACT,
)
three_heads = Judge(
    PlantedRow,
    lambda row: row.layers * row.heads == 3 and row.error < 1e-6,
    lambda rows: f"{rows[0].layers * rows[0].heads} heads, error {rows[0].error:.0e}",
    among=lambda row: row.planted == 3,
    no_seeds=EXACT,
)

OF_DEPTH = (
    Claim(
        "musat/theorem-1", "D hops need at least log3(2D) layers.", "theorem 1, appendix B",
        "t ≥ log3(2D)", "the exact minimum under the theorem's assumptions is never below, in "
        "closed form and by simulation", ("musat/depth",), theorem_1,
    ),
    Claim(
        "musat/three-heads-suffice", "Three heads would be enough for D = 3.", "§8.2",
        "3", "a transformer with weights written by hand, without MLP and norm: error below 1e-6 "
        "on 64 fresh examples with symbols that are unit vectors of 64 numbers",
        ("musat/depth",), three_heads,
    ),
)  # fmt: skip


def layers(row: LossRow) -> str:
    """The setting of a model of figure 4."""
    return f"{row.layers} layers"


def hops_of(row: LossRow) -> int:
    """Return the last hop that a model has learned at the end; 0 if none."""
    losses = zip(row.asked, row.final, strict=True)
    return max((hop for hop, loss in losses if loss < LEARNED_LOSS), default=0)


def allowed(row: LossRow) -> int:
    """Return the largest number of hops that a model of this depth can learn, of the asked ones."""
    return min(reach(row.layers), row.asked[-1])


def in_turn(learned_at: Sequence[int | None]) -> Iterator[bool]:
    """Yield for each hop that was learned whether the hop before it was learned earlier."""
    for earlier, later in pairwise(learned_at):
        if later is not None:
            yield earlier is not None and earlier <= later


def nothing_learned(rows: list[LossRow]) -> str:
    """Return a reason to decide nothing: shorter training than the paper's, and nothing learned.

    Empty if the rows decide.
    """
    short = any(row.steps < STEPS for row in rows)
    if not short or any(row.curriculum and hops_of(row) for row in rows):
        return ""
    return "no model learned a hop, in less training than the paper's"


def _lowest(rows: list[LossRow], curriculum: bool) -> float:
    return min(row.loss for row in rows if bool(row.curriculum) is curriculum)


def _rising(rows: list[LossRow]) -> tuple[int, int, int]:
    """Return at how many depths mean losses rise with the hop, at how many they fall, and the
    number of depths.
    """
    rises = falls = 0
    depths = group(rows, layers)
    for own in depths.values():
        capped = [[min(loss, row.chance) for loss in row.final] for row in own]
        means = [sum(hop) / len(hop) for hop in zip(*capped, strict=True)]
        falls += any(a > b + CHANCE for a, b in pairwise(means))
        rises += means[0] + CHANCE < means[-1]
    return rises, falls, len(depths)


def _fewest(rows: list[LossRow]) -> list[int | None]:
    """Return for each hop the fewest layers with which some seed learns it (None: none does)."""
    return [
        min((row.layers for row in rows if row.final[hop] < LEARNED_LOSS), default=None)
        for hop in range(len(rows[0].final))
    ]


def _deeper(rows: list[LossRow]) -> bool:
    learned = [depth for depth in _fewest(rows) if depth is not None]
    return len(learned) > 1 and learned[0] < learned[-1] and all(in_turn(_fewest(rows)))


def _of_all(holds: Any, ours: Any, setting: Callable[[LossRow], str] = layers) -> Judge[LossRow]:
    """Make a judge of a claim about the models of all depths together."""
    return Judge(
        LossRow, holds, ours, of="all", once=longest, setting=setting, undecided=nothing_learned
    )


never = Judge(
    LossRow,
    lambda row: row.loss > 0.7,
    lambda rows: f"lowest {min(row.loss for row in rows):.3f}",
    once=longest,
    setting=layers,
)
essential = _of_all(
    lambda rows: _lowest(rows, curriculum=True) < LEARNED_LOSS < _lowest(rows, curriculum=False),
    lambda rows: (
        f"best loss {_lowest(rows, curriculum=True):.3f} with, "
        f"{_lowest(rows, curriculum=False):.3f} without"
    ),
    lambda row: f"{layers(row)} {'with' if row.curriculum else 'without'}",
)
later_harder = _of_all(
    lambda rows: _rising(rows)[0] > 0 and _rising(rows)[1] == 0,
    lambda rows: "losses rise with the hop at {} of {} depths, and fall at {}".format(
        *(_rising(rows)[at] for at in (0, 2, 1))
    ),
)
later_deeper = _of_all(
    _deeper,
    lambda rows: (
        "fewest layers that learn x₁, x₂, …: "
        + ", ".join("–" if depth is None else str(depth) for depth in _fewest(rows))
    ),
)
in_order = Judge(
    LossRow,
    lambda row: all(in_turn(row.learned_at)),
    lambda rows: f"{len(rows)} models learned a hop after x₁",
    among=lambda row: any(step is not None for step in row.learned_at[1:]),
    once=longest,
    model=layers,
)
depth_law = Judge(
    LossRow,
    lambda row: hops_of(row) <= allowed(row),
    lambda rows: (
        f"beaten by {out_of(sum(hops_of(row) > allowed(row) for row in rows), len(rows))} models "
        "that are asked for more hops than their depth allows"
    ),
    among=lambda row: allowed(row) < row.asked[-1],
    once=longest,
    setting=layers,
    undecided=lambda rows: "" if any(map(hops_of, rows)) else "no model learned a hop",
)

SEEDS = ("musat/fig4-seeds",)
NONIC_SEEDS = ("musat/fig4-nonic-seeds",)

CLAIMS = (
    Claim(
        "musat/nonic-above-0.7", "Without curriculum no transformer learns, whatever its depth.",
        "§7.2", "100 % of 64 runs above 0.7", "final validation loss of every run",
        ("musat/fig4-nonic",), never, only_full=True, beside=NONIC_SEEDS,
    ),
    Claim(
        "musat/ic-essential", "The implicit curriculum makes learning possible.", "§7.2, figure 4",
        "learned with, not without", "the lowest final loss over all depths, D = 5 with and D = 3 "
        f"without: below {LEARNED_LOSS} with, and above it without",
        ("musat/fig4-ic", "musat/fig4-nonic"), essential, only_full=True,
        beside=SEEDS + NONIC_SEEDS,
    ),
    Claim(
        "musat/later-harder", "Later symbols of a chain are harder.", "§7.2, figure 4 right",
        "partial losses rise along the chain", "final losses of each hop, means over the seeds of "
        f"a depth and none taken above chance: they fall at no depth by more than {CHANCE}, "
        "which a loss on the plateau moves by chance, and rise at some",
        ("musat/fig4-ic",), later_harder, only_full=True, beside=SEEDS,
    ),
    Claim(
        "musat/later-deeper", "Later symbols of a chain need more layers.", "§7.2, figure 4 right",
        "deeper models learn more hops",
        f"the fewest layers with a final loss below {LEARNED_LOSS}, of "
        "the best seed of a depth, rise with the hop",
        ("musat/fig4-ic",), later_deeper, only_full=True, beside=SEEDS,
    ),
    Claim(
        "musat/depth-law", "No transformer learns more hops than its depth allows.",
        "theorem 1; the exact law is ours", "log3(2D) layers or more for D hops",
        "the last hop learned, at most 2^(layers − 1) − 1", ("musat/fig4-ic",), depth_law,
        only_full=True, beside=SEEDS, origin="ours",
    ),
    Claim(
        "musat/hops-in-order", "With curriculum every model learns x₁ first, then x₂, and so on.",
        "§7.2", "100 % of 64 runs", f"the steps at which the mean of ten training losses falls "
        f"below {LEARNED_LOSS}, of models that learn a hop after x₁",
        ("musat/fig4-ic",), in_order, only_full=True, beside=SEEDS,
    ),
)  # fmt: skip
