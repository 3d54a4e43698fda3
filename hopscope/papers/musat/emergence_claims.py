"""The claims of Musat (ICLR 2025) about transformer D.

The paper leaves the number of training examples and the initial weights open, so a claim may hold
under some variants only.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from hopscope.facts import symbol_name
from hopscope.papers.claim import Claim
from hopscope.papers.judge import Judge, span
from hopscope.papers.musat.circuit_claims import (
    REMOVALS,
    all_within,
    removals,
    shared_steps,
    within,
)
from hopscope.papers.musat.rows import CircuitRow, LossRow, longest

LOSS = 0.031
"""The paper's loss of transformer D (§9.2)."""
CIRCUIT_LOSS = 0.045
"""The paper's loss of transformer D if all heads have prescribed attention (§9.2)."""
EPOCH = 8
"""Steps per epoch as the paper counts: 6,400 steps are 800 epochs (§9.1)."""
STEPS = 6_400
"""The paper's number of steps (§9.1)."""
START = 450
"""The epoch at which the first head emerges (§9.2)."""
MUCH = 2
"""Least ratio of steps that counts as "much later"."""
QUICKLY = 0.25
"""Largest share of the steps before an event that counts as "quickly after" it."""


def variant(row: LossRow) -> str:
    """Return the variant of a model as text: its choices of what the paper leaves open."""
    choices = [
        f"{row.examples:,} examples",
        "initial weights of 1/√inputs" * (row.init != "gpt2"),
        f"a code per {row.position}" * (row.position != "token"),
    ]
    *others, last = filter(None, choices)
    return " and ".join(filter(None, [", ".join(others), last]))


def all_learned(row: LossRow) -> list[int]:
    """Return the steps at which the hops were learned; empty unless all were."""
    known = [step for step in row.learned_at if step is not None]
    return known if len(known) == len(row.learned_at) else []


def gaps(row: LossRow) -> list[int]:
    """Return the steps from each learned hop to the next."""
    return [b - a for a, b in pairwise(all_learned(row))]


def quickly(row: LossRow) -> bool:
    return row.wait is not None and 0 <= row.wait[1] <= QUICKLY * row.wait[0]


def steps(row: LossRow) -> str:
    """Return as text when each hop was learned."""
    said = ("never" if step is None else f"{step:,}" for step in row.learned_at)
    return ", ".join(f"{symbol_name(f'x{hop}')} {step}" for hop, step in enumerate(said, 1))


class FirstPath(NamedTuple):
    """The step at which attention first passed one half along a path to a fact, and its head."""

    step: float
    head: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.step:,.0f} ({'.'.join(map(str, self.head))})"


def first_paths(row: CircuitRow, joins: bool = False) -> Mapping[int, FirstPath]:
    """Return the first look-up to reach each fact and no later one; with `joins`, the first path.

    A look-up has a value as its source. A key precedes its value and so never holds it: a path from
    a key joins a pair, or routes later heads.
    """
    found: dict[int, FirstPath] = {}
    story = row.story
    for path, step in story.order if story else ():
        if step is not None and (joins or path.source.kind == "value"):
            ends = (path.destination, path.source)
            fact = max(role.fact for role in ends if role.kind != "query")
            one = FirstPath(step, (path.layer, path.head))
            found[fact] = min(one, found.get(fact, one))
    return dict(sorted(found.items()))


def look_ups(row: CircuitRow) -> str:
    """Return the first look-up to each fact as text, with remarks on uncertain orders."""
    looked, every = first_paths(row), first_paths(row, joins=True)
    names = {fact: symbol_name(f"x{fact + 1}") for fact in looked}
    said = ", ".join(f"{names[fact]} {one}" for fact, one in looked.items()) or "no look-up"
    moments = row.story.steps if row.story else ()
    close = [
        f"{names[earlier]} and {names[later]}"
        for earlier, later in pairwise(looked)
        if bisect_left(moments, looked[earlier].step) == bisect_left(moments, looked[later].step)
    ]
    if close:
        said += f", of which {', '.join(close)} between the same two checkpoints"
    if _in_turn(looked) != _in_turn(every):
        other = ", ".join(f"{one.step:,.0f}" for one in every.values())
        said += f", in another order with paths that read keys: {other}"
    return said


def _in_turn(found: Mapping[int, FirstPath]) -> bool:
    return all(a.step <= b.step for a, b in pairwise(found.values()))


def in_order(row: CircuitRow) -> bool:
    """Return whether there is a look-up to each fact, in the order of the hops."""
    firsts = first_paths(row)
    return len(firsts) == row.hops and _in_turn(firsts)


def heads_apart(row: CircuitRow) -> bool:
    """Return whether each hop has its own head."""
    return len({one.head for one in first_paths(row).values()}) == row.hops


def _circuit(row: CircuitRow) -> str:
    without = f", components without a rule: {row.unnamed}" if row.unnamed else ""
    return f"{row.prescribed:.3f} (model {row.model:.3f}{without})"


def _start(row: LossRow) -> str:
    step = row.learned_at[0]
    return "never" if step is None else f"step {step:,} (epoch {step / EPOCH:.0f})"


def _removed(row: CircuitRow) -> str:
    count = len(within(removals(row), REMOVALS))
    losses = f", {span(removals(row), 2)}" if removals(row) else ""
    return (
        f"{count} of {len(removals(row))} paths{losses} (circuit {row.prescribed:.3f})"
        + shared_steps([row]).replace(";", ",")
    )


def _full(row: CircuitRow) -> bool:
    return row.steps >= STEPS


SEEDS = ("musat/fig7-seeds", "musat/fig7-pair")
"""Transformer D with larger initial weights, other seeds and a code per pair, some with fewer
steps: these show the order of events, and final losses only with all steps."""
LOOK_UPS = (
    "when attention first passes 0.5 along a look-up that reads a value and reaches x₁, x₂, … and "
    "not farther, on straight lines between checkpoints; every hop has one; paths that join a pair "
    "stand apart, as in the paper, where layer 14 belongs to the first look-up"
)


def _claim(
    name: str, says: str, where: str, paper: str, how: str, holds: Callable[[Any], bool],
    **judged: Any,
) -> Claim:  # fmt: skip
    """Make a claim about each seed of transformer D: `ours` returns our value for one seed."""
    of_one = judged.pop("ours")

    def ours(rows: list[CircuitRow]) -> str:
        return "; ".join(f"seed {row.seed}: {of_one(row)}" for row in rows)

    judge: Judge[Any] = Judge(
        CircuitRow, holds, ours, once=longest, variant=variant, first="262,144 examples", **judged
    )
    return Claim(f"musat/d-{name}", says, where, paper, how, ("musat/fig7",), judge, beside=SEEDS)


CLAIMS = (
    _claim(
        "loss", "Transformer D ends at 0.031.", "§9.2", "0.031",
        "final validation loss, mean over the last 100 steps, at most twice the paper's value",
        lambda row: row.loss <= 2 * LOSS, ours=lambda row: f"{row.loss:.3f}", among=_full,
    ),
    _claim(
        "circuit-loss", "The circuit of D alone keeps the loss at 0.045.", "§9.2", "0.045",
        "circuit with prescribed attention (components without a rule follow a table, or are left "
        "as in the model); at most twice the paper's value",
        lambda row: row.prescribed <= 2 * CIRCUIT_LOSS, ours=_circuit, among=_full,
    ),
    _claim(
        "single-removals", "Removing any one path of D's circuit costs much.", "appendix E",
        "0.17 … 0.89", "every path removed alone, all others prescribed, but for those of the "
        "first head with a path; the circuit itself is below",
        lambda row: row.prescribed < REMOVALS[0] and all_within(removals(row), REMOVALS),
        ours=_removed,
    ),
    _claim(
        "slow-start", "D's first head emerges after 450 slow epochs.", "§9.2", "epoch 450",
        "when x₁ passes 0.5: between half of 450 epochs and half as many again, of 8 steps each, "
        "as the paper counts them",
        lambda row: START / 2 <= (row.learned_at[0] or 0) / EPOCH <= 1.5 * START, ours=_start,
    ),
    _claim(
        "hops-in-order", "D learns one hop after the other, all four.", "§9.2, figure 6 right",
        "x₁, then x₂, x₃, x₄", "steps at which x₁, x₂, … pass 0.5",
        lambda row: bool(all_learned(row)) and min(gaps(row), default=0) >= 0, ours=steps,
    ),
    _claim(
        "order", "Look-ups of D emerge one after the other, in the order of the hops.",
        "§9.2, figure 7 right", "B, then C, then D, then E", LOOK_UPS, in_order, ours=look_ups,
    ),
    _claim(
        "head-per-hop", "Each further hop of D has a head of its own.", "§9.2, figure 7 right",
        "21, 22, 23, 24", f"the heads of the first look-ups: {LOOK_UPS}",
        lambda row: in_order(row) and heads_apart(row), ours=look_ups,
    ),
    _claim(
        "several-paths", "Several paths of D connect the same positions.", "§9.2, figure 7 left",
        "several", "pairs of roles that paths of two or more heads connect",
        lambda row: bool(row.shared), ours=lambda row: f"{len(row.shared)}",
    ),
    _claim(
        "quickly-after", "D's second hop follows the first quickly.", "§9.2", "quickly after",
        f"steps from x₁ to x₂, at most {QUICKLY:.0%} of those to x₁",
        quickly, ours=lambda row: f"{row.wait[1]:,} after {row.wait[0]:,}" if row.wait else "never",
    ),
    _claim(
        "last-late", "D learns its last hop much later than the one before.", "§9.2",
        "head 24 much later than 23",
        f"steps from each hop to the next: the last are at least {MUCH} times those before",
        lambda row: len(gaps(row)) > 1 and gaps(row)[-1] >= MUCH * gaps(row)[-2],
        ours=lambda row: " + ".join(f"{gap:,}" for gap in gaps(row)) or "not all hops learned",
    ),
)  # fmt: skip
