"""What Musat (ICLR 2025) says of transformer D, and how it is judged.

The paper leaves open how many training examples and which initial weights it had, and a claim may
hold under some readings only; then its finding names the first.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from hopscope.facts import parse_role, symbol_name
from hopscope.papers.claim import Claim, span
from hopscope.papers.musat.by_reading import by_reading
from hopscope.papers.musat.circuit_judges import REMOVALS, without_steps
from hopscope.papers.musat.rows import CircuitRow, LossRow

LOSS = 0.031
"""The paper's loss of transformer D (§9.2)."""
CIRCUIT_LOSS = 0.045
"""The paper's loss of transformer D if all heads are replaced by their mechanisms (§9.2)."""
EPOCH = 8
"""Steps of an epoch, as the paper counts: 6,400 steps are 800 epochs (§9.1)."""
START = 450
"""The epoch at which its first head emerges (§9.2)."""
MUCH = 2
"""How many times as many steps count as "much later"."""
QUICKLY = 0.25
"""Steps after another event that count as "quickly after", as a part of those before it."""


loss = by_reading(
    CircuitRow,
    lambda row: row.loss <= 2 * LOSS,
    lambda row: f"{row.loss:.3f}",
    "mean over the last 100 steps, at most twice the paper's value",
)
circuit_loss = by_reading(
    CircuitRow,
    lambda row: row.prescribed <= 2 * CIRCUIT_LOSS,
    lambda row: (
        f"{row.prescribed:.3f} (from {row.model:.3f}"
        + (f", components without a rule: {row.unnamed})" if row.unnamed else ")")
    ),
    "circuit with prescribed attention; components without a rule follow a table, or are left as "
    "in the model; at most twice the paper's value",
)


def _start(row: LossRow) -> str:
    step = row.crossed[0]
    return "never" if step is None else f"step {step:,} (epoch {step / EPOCH:.0f})"


slow_start = by_reading(
    LossRow,
    lambda row: START / 2 <= (row.crossed[0] or 0) / EPOCH <= 1.5 * START,
    _start,
    "the step at which x₁ passes 0.5; between half of 450 epochs and half as many again, of 8 "
    "steps each, as the paper counts them",
)


def _steps(row: LossRow) -> str:
    told = ("never" if step is None else f"{step:,}" for step in row.crossed)
    return ", ".join(f"{symbol_name(f'x{hop}')} {step}" for hop, step in enumerate(told, 1))


def _all_in_order(row: LossRow) -> bool:
    learned = _learned(row)
    return bool(learned) and all(a <= b for a, b in pairwise(learned))


def _learned(row: LossRow) -> list[int]:
    """The steps at which the hops were learned; none unless all were."""
    known = [step for step in row.crossed if step is not None]
    return known if len(known) == len(row.crossed) else []


hops_in_order = by_reading(
    LossRow,
    _all_in_order,
    _steps,
    "steps at which x₁, x₂, … pass 0.5; all do, one after the other",
)


class FirstPath(NamedTuple):
    """When attention first passed one half along a path to some fact, and in which head."""

    step: float
    head: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.step:,.0f} ({'.'.join(map(str, self.head))})"


def first_paths(row: CircuitRow, joins: bool = False) -> Mapping[int, FirstPath]:
    """The first look-ups that reach each fact and none behind it; or, with `joins`, the first paths
    of any kind.

    A look-up reads a value. A key stands before its value, so it never holds it: a path that reads
    a key joins a pair, or tells where to look.
    """
    found: dict[int, FirstPath] = {}
    for path in row.emergence.paths if row.emergence is not None else ():
        step = path.emerged_at_step
        reader, source = parse_role(path.reader), parse_role(path.source)
        if step is not None and (joins or source.kind == "value"):
            fact = max(role.fact for role in (reader, source) if role.kind != "query")
            one = FirstPath(step, (path.layer, path.head))
            found[fact] = min(one, found.get(fact, one))
    return dict(sorted(found.items()))


def _paths(row: CircuitRow) -> str:
    looked, every = first_paths(row), first_paths(row, joins=True)
    names = {fact: symbol_name(f"x{fact + 1}") for fact in looked}
    told = ", ".join(f"{names[fact]} {one}" for fact, one in looked.items()) or "no look-up"
    close = [
        f"{names[earlier]} and {names[later]}"
        for earlier, later in pairwise(looked)
        if _interval(row, looked[earlier].step) == _interval(row, looked[later].step)
    ]
    if close:
        told += f", of which {', '.join(close)} between the same two checkpoints"
    if _in_turn(looked) != _in_turn(every):
        steps = ", ".join(f"{one.step:,.0f}" for one in every.values())
        told += f", in another order with paths that read keys: {steps}"
    return told


def _interval(row: CircuitRow, step: float) -> int:
    """Which two checkpoints a step lies between: what comes there in which order is not known."""
    return bisect_left(row.emergence.steps if row.emergence is not None else (), step)


def _in_turn(found: Mapping[int, FirstPath]) -> bool:
    return all(a.step <= b.step for a, b in pairwise(found.values()))


def _in_order(row: CircuitRow) -> bool:
    firsts = first_paths(row)
    return len(firsts) == row.hops and _in_turn(firsts)


def _heads_apart(row: CircuitRow) -> bool:
    return len({one.head for one in first_paths(row).values()}) == row.hops


LOOK_UPS = (
    "steps at which attention first passes 0.5 along a look-up that reads a value and reaches x₁, "
    "x₂, … and not farther, and of which head, on straight lines between checkpoints; every hop "
    "has one; paths that join a pair stand apart, as in the paper, where layer 14 belongs to the "
    "first look-up"
)
look_ups_in_order = by_reading(CircuitRow, _in_order, _paths, LOOK_UPS)
heads_in_order = by_reading(
    CircuitRow,
    lambda row: _in_order(row) and _heads_apart(row),
    _paths,
    f"{LOOK_UPS}; a head of its own for every hop",
)


several_paths = by_reading(
    CircuitRow,
    lambda row: bool(row.shared),
    lambda row: f"{len(row.shared or ())}",
    "pairs of roles that paths of two or more heads connect",
)


def _quickly(row: LossRow) -> bool:
    wait = row.wait
    return wait is not None and 0 <= wait[1] <= QUICKLY * wait[0]


def _waited(row: LossRow) -> str:
    wait = row.wait
    return "never" if wait is None else f"{wait[1]:,} after {wait[0]:,}"


quickly_after = by_reading(
    LossRow,
    _quickly,
    _waited,
    f"steps from x₁ to x₂, which are at most {QUICKLY:.0%} of those to x₁",
)


def _gaps(row: LossRow) -> list[int]:
    return [b - a for a, b in pairwise(_learned(row))]


last_late = by_reading(
    LossRow,
    lambda row: len(_gaps(row)) > 1 and _gaps(row)[-1] >= MUCH * _gaps(row)[-2],
    lambda row: " + ".join(f"{gap:,}" for gap in _gaps(row)) or "not all hops learned",
    f"steps from each hop's passing 0.5 to the next one's; in every model the last gap is at least "
    f"{MUCH} times the one before",
)


def _removals(row: CircuitRow) -> list[float]:
    return [removal.prescribed for removal in row.removals if removal.head not in row.useful[:1]]


def _within(row: CircuitRow) -> list[float]:
    return [loss for loss in _removals(row) if REMOVALS[0] <= loss <= REMOVALS[1]]


def _removed(row: CircuitRow) -> str:
    steps = without_steps(row)
    shared = f", without shared steps {span(steps, 2)}" if steps else ""
    return (
        f"{len(_within(row))} of {len(_removals(row))} paths (circuit {row.prescribed:.3f}{shared})"
    )


removals = by_reading(
    CircuitRow,
    lambda row: row.prescribed < REMOVALS[0] and [] != _removals(row) == _within(row),
    _removed,
    "each path removed alone from the circuit, all others prescribed, but for those of the first "
    "head with a path: how many lead to 0.17 … 0.89; the circuit itself is below; a step that "
    "several heads share is removed with all of them",
)


SEEDS = ("musat/fig7-seeds", "musat/fig7-pair")
"""Transformer D with larger initial weights, with other seeds and a code per pair, perhaps for
fewer steps: they tell the order of what happens, and not where losses end."""

CLAIMS = (
    Claim(
        "musat/d-loss", "Transformer D ends at 0.031.", "§9.2",
        "0.031", "final validation loss, every reading", ("musat/fig7",),
        loss,
    ),
    Claim(
        "musat/d-circuit-loss", "The circuit of D alone keeps the loss at 0.045.", "§9.2",
        "0.045", "circuit with prescribed attention; at most twice the paper's value",
        ("musat/fig7",), circuit_loss,
    ),
    Claim(
        "musat/d-single-removals", "Removing any one path of D's circuit costs much.", "appendix E",
        "0.17 … 0.89", "every path removed alone, those of the first head apart", ("musat/fig7",),
        removals, beside=SEEDS,
    ),
    Claim(
        "musat/d-slow-start", "D's first head emerges after 450 slow epochs.", "§9.2",
        "epoch 450", "when x₁ passes 0.5; up to half of that earlier or later",
        ("musat/fig7",), slow_start, beside=SEEDS,
    ),
    Claim(
        "musat/d-hops-in-order", "D learns one hop after the other, all four.",
        "§9.2, figure 6 right", "x₁, then x₂, x₃, x₄", "when x₁, x₂, … pass 0.5",
        ("musat/fig7",), hops_in_order, beside=SEEDS,
    ),
    Claim(
        "musat/d-order", "Look-ups of D emerge one after the other, in the order of the hops.",
        "§9.2, figure 7 right", "B, then C, then D, then E",
        "when attention passes 0.5 along the first look-up that reaches x₁, x₂, …",
        ("musat/fig7",), look_ups_in_order, beside=SEEDS,
    ),
    Claim(
        "musat/d-head-per-hop", "Each further hop of D has a head of its own.",
        "§9.2, figure 7 right", "21, 22, 23, 24", "the heads of those first look-ups",
        ("musat/fig7",), heads_in_order, beside=SEEDS,
    ),
    Claim(
        "musat/d-several-paths", "Several paths of D connect the same positions.",
        "§9.2, figure 7 left", "several", "paths of different heads between the same roles",
        ("musat/fig7",), several_paths, beside=SEEDS,
    ),
    Claim(
        "musat/d-quickly-after", "D's second hop follows the first quickly.", "§9.2",
        "quickly after", "steps between the hops' passing 0.5",
        ("musat/fig7",), quickly_after, beside=SEEDS,
    ),
    Claim(
        "musat/d-last-late", "D learns its last hop much later than the one before.", "§9.2",
        "head 24 much later than 23", "steps between the hops' passing 0.5",
        ("musat/fig7",), last_late, beside=SEEDS,
    ),
)  # fmt: skip
