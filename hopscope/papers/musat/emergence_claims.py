"""What Musat (ICLR 2025) says of transformer D, and how it is judged.

The paper leaves open how many training examples and which initial weights it had, and a claim may
hold under some readings only; then its finding names the first.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from hopscope.facts import parse_role
from hopscope.papers.claim import Claim, span
from hopscope.papers.musat.by_reading import by_reading
from hopscope.papers.musat.circuit_claims import REMOVALS, told, without_steps
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
    lambda row: row.ideal <= 2 * CIRCUIT_LOSS,
    lambda row: (
        f"{row.ideal:.3f} (from {row.clean:.3f}"
        + (f", rows as in the model: {row.unexplained})" if row.unexplained else ")")
    ),
    "every head's attention replaced by the mechanism found, but for rows that no mechanism "
    "explains; at most twice the paper's value",
)


def _start(row: LossRow) -> str:
    step = row.crossed[0]
    return "never" if step is None else f"step {step:,} (epoch {step / EPOCH:.0f})"


slow_start = by_reading(
    LossRow,
    lambda row: START / 2 <= (row.crossed[0] or 0) / EPOCH <= 1.5 * START,
    _start,
    "the step at which x_1 passes 0.5; between half of 450 epochs and half as many again, of 8 "
    "steps each, as the paper counts them",
)


def _steps(row: LossRow) -> str:
    return " < ".join("never" if step is None else f"{step:,}" for step in row.crossed)


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
    "steps at which x_1, x_2, … pass 0.5; all do, one after the other",
)


class FirstPath(NamedTuple):
    """When attention first passed one half along a path to some fact, and in which head."""

    step: float
    head: tuple[int, int]


def first_paths(row: CircuitRow, joins: bool = False) -> Mapping[int, FirstPath]:
    """The first look-ups that reach each fact and none behind it; or, with `joins`, the first paths
    of any kind, those that join a pair as well.
    """
    found: dict[int, FirstPath] = {}
    for path in row.emergence.paths if row.emergence is not None else ():
        step = path.emerged_at_step
        reader, source = parse_role(path.reader), parse_role(path.source)
        joining = (reader.kind, source.kind) == ("value", "key") and reader.fact == source.fact
        if step is not None and (joins or not joining):
            fact = max(role.fact for role in (reader, source) if role.kind != "query")
            one = FirstPath(step, (path.layer, path.head))
            found[fact] = min(one, found.get(fact, one))
    return dict(sorted(found.items()))


def _paths(row: CircuitRow) -> str:
    looked, all_ = (_in_steps(first_paths(row, joins)) for joins in (False, True))
    return looked if looked == all_ else f"{looked}, with pairs joined {all_}"


def _in_steps(found: Mapping[int, FirstPath]) -> str:
    told = (f"{one.step:,.0f} ({'.'.join(map(str, one.head))})" for one in found.values())
    return " < ".join(told) or "no path"


def _in_order(row: CircuitRow) -> bool:
    firsts = list(first_paths(row).values())
    return len(firsts) == row.hops and all(a.step <= b.step for a, b in pairwise(firsts))


def _heads_apart(row: CircuitRow) -> bool:
    return len({one.head for one in first_paths(row).values()}) == row.hops


LOOK_UPS = (
    "steps at which attention first passes 0.5 along a look-up that reaches x_1, x_2, … and not "
    "farther, and of which head; every hop has one; paths that join a pair stand apart, as in the "
    "paper, where layer 14 belongs to the first look-up"
)
look_ups_in_order = by_reading(CircuitRow, _in_order, _paths, LOOK_UPS)
heads_in_order = by_reading(
    CircuitRow,
    lambda row: _in_order(row) and _heads_apart(row),
    _paths,
    f"{LOOK_UPS}; a head of its own for every hop",
)


def _same_ends(row: CircuitRow) -> int:
    """How many pairs of roles are connected by paths of several heads."""
    counts = Counter(told(each.what) for each in row.removals)
    return sum(count > 1 for count in counts.values())


several_paths = by_reading(
    CircuitRow,
    lambda row: _same_ends(row) > 0,
    lambda row: f"{_same_ends(row)}",
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
    f"steps from x_1 to x_2, which are at most {QUICKLY:.0%} of those to x_1",
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
    return [removal.ideal for removal in row.removals if removal.head not in row.useful[:1]]


def _within(row: CircuitRow) -> list[float]:
    return [loss for loss in _removals(row) if REMOVALS[0] <= loss <= REMOVALS[1]]


def _removed(row: CircuitRow) -> str:
    steps = without_steps(row)
    shared = f", without shared steps {span(steps, 2)}" if steps else ""
    return f"{len(_within(row))} of {len(_removals(row))} paths (circuit {row.ideal:.3f}{shared})"


removals = by_reading(
    CircuitRow,
    lambda row: row.ideal < REMOVALS[0] and [] != _removals(row) == _within(row),
    _removed,
    "each path removed alone from the circuit, all others ideal, but for those of the first head "
    "with a path: how many lead to 0.17 … 0.89; the circuit itself is below; a step that several "
    "heads share is removed with all of them",
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
        "0.045", "all heads replaced by their mechanisms; at most twice the paper's value",
        ("musat/fig7",), circuit_loss,
    ),
    Claim(
        "musat/d-single-removals", "Removing any one path of D's circuit costs much.", "appendix E",
        "0.17 … 0.89", "every path removed alone, those of the first head apart", ("musat/fig7",),
        removals, beside=SEEDS,
    ),
    Claim(
        "musat/d-slow-start", "D's first head emerges after 450 slow epochs.", "§9.2",
        "epoch 450", "when x_1 passes 0.5; up to half of that earlier or later",
        ("musat/fig7",), slow_start, beside=SEEDS,
    ),
    Claim(
        "musat/d-hops-in-order", "D learns one hop after the other, all four.",
        "§9.2, figure 6 right", "x_1, then x_2, x_3, x_4", "when x_1, x_2, … pass 0.5",
        ("musat/fig7",), hops_in_order, beside=SEEDS,
    ),
    Claim(
        "musat/d-order", "Look-ups of D emerge one after the other, in the order of the hops.",
        "§9.2, figure 7 right", "B, then C, then D, then E",
        "when attention passes 0.5 along the first look-up that reaches x_1, x_2, …",
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
