"""What the circuit and each of its parts are worth, on fresh examples in several batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hopscope import intervals
from hopscope.circuits.ablation import Head
from hopscope.circuits.ablator import Ablator
from hopscope.circuits.draft import Draft, Step, Unit
from hopscope.circuits.exam import Questions, exam_of
from hopscope.circuits.limits import Limits
from hopscope.circuits.mechanism import Mechanism
from hopscope.circuits.parts import Estimate, Kind, Losses, Part, Restored, Shared
from hopscope.circuits.search import Search
from hopscope.circuits.state import State

Examples = Float[np.ndarray, "batch example hop"]
Name = tuple[str, int | Head | None]
"""What a state is, and of which unit, head or step (None: of the whole circuit)."""
Measured = dict[Name, Examples]
CONDITIONS = ("ideal", "own", "clean")
"""Names of the states from which each unit is removed: the three of a draft, in their order."""


@dataclass(frozen=True)
class Findings:
    """What is measured of a circuit on fresh examples: its losses, and the cost of each part."""

    losses: Losses
    parts: tuple[Part, ...]
    restored: tuple[Restored, ...]
    shared: tuple[Shared, ...]


def measure(search: Search, questions: Questions, draft: Draft, seed: int) -> Findings:
    """Losses of the circuit, of it without each part, and with each idle head given back."""
    states = _states(search, draft)
    of = dict(zip(states, _losses(search, questions, [*states.values()], seed), strict=True))
    return Findings(
        _summary(search, of),
        tuple(_part(search, draft, of, number) for number in range(len(draft.units))),
        tuple(
            Restored(layer=head[0], head=head[1], loss=float(of["restored", head].mean()))
            for head in draft.states.ideal.idle
        ),
        tuple(
            _shared(step, units, of["step", number])
            for number, (step, units) in enumerate(draft.shared_steps.items())
        ),
    )


def _states(search: Search, draft: Draft) -> dict[Name, State]:
    """Every state of the model whose loss is measured, by name."""
    ideal = draft.states.ideal
    states: dict[Name, State] = {
        ("clean", None): State(),
        ("ideal", None): ideal,
        ("own", None): draft.states.own,
        ("ablated", None): State({h: Mechanism(rest=m.rest) for h, m in ideal.mechanisms.items()}),
    }
    for number, unit in enumerate(draft.units):
        less = draft.states.without(unit, search.sources)
        states["ideal", number] = less.ideal
        states["own", number] = less.own
        states["clean", number] = less.untouched
    for number, units in enumerate(draft.shared_steps.values()):
        states["step", number] = ideal.doing_nothing([row for unit in units for row in unit.rows])
    return states | {("restored", head): ideal.given_back(head) for head in ideal.idle}


def _losses(
    search: Search, questions: Questions, states: list[State], seed: int
) -> Float[np.ndarray, "state batch example hop"]:
    batches, size = search.settings.batches, search.settings.batch
    fresh = exam_of(questions, batches * size, seed + 1)
    ablator = Ablator(search.ablator.adapter, fresh)
    found = ablator.losses([state.ablation for state in states], search.progress)
    losses: np.ndarray = found.unflatten(1, (batches, size)).double().cpu().numpy()
    return losses


def _summary(search: Search, of: Measured) -> Losses:
    clean, ideal, own, ablated = (
        tuple(float(x) for x in of[name, None].mean((0, 1)))
        for name in ("clean", "ideal", "own", "ablated")
    )
    guess = search.guess
    limits = Limits.of(np.array(clean), guess, search.settings)
    return Losses(
        clean=clean,
        ideal=ideal,
        own=own,
        ablated=ablated,
        guess=guess,
        limit=limits.mean,
        hop_limits=tuple(limits.hop.tolist()),
    )


def _shared(step: Step, units: list[Unit], losses: Examples) -> Shared:
    heads = tuple(head for unit in units for head in unit.heads)
    return Shared(reader=step[0], source=step[1], heads=heads, cost=_estimate(losses))


def _part(search: Search, draft: Draft, of: Measured, number: int) -> Part:
    """A unit with its costs, of the kind that all batches together say."""
    unit = draft.units[number]
    without = [of[name, number] for name in CONDITIONS]
    pairs = list(zip(without, (of[name, None] for name in CONDITIONS), strict=True))
    floor, needed = search.floor, search.settings.needed
    batches = [less.mean((1, 2)) / np.maximum(whole.mean((1, 2)), floor) for less, whole in pairs]
    overall = [float(less.mean()) / max(float(whole.mean()), floor) for less, whole in pairs]
    locating = draft.locates(unit)
    kind = _kind(unit, overall, locating, needed)
    votes = [_kind(unit, b, locating, needed) == kind for b in zip(*batches, strict=True)]
    cost, own_cost, alone_cost = map(_estimate, without)
    return Part(
        layer=unit.head[0],
        head=unit.head[1],
        also=tuple(head for _, head in unit.heads[1:]),
        readers=tuple(dict.fromkeys(role for _, role in unit.rows)),
        paths=unit.paths,
        kind=kind,
        cost=cost,
        own_cost=own_cost,
        alone_cost=alone_cost,
        votes=float(np.mean(votes)),
    )


def _kind(unit: Unit, ratios: Sequence[float], locating: bool, needed: float) -> Kind:
    """What the unit is, from how many times higher the loss is without it in each state."""
    ideal, *free = ratios
    if ideal >= needed:
        return "carries"
    if locating and max(free) >= needed:
        return "locates"
    return "weak" if unit.paths or unit.named else "background"


def _estimate(losses: Examples) -> Estimate:
    """The mean loss of an example, with its interval."""
    each = losses.mean(-1).flatten()
    low, high = intervals.mean(each)
    return Estimate(mean=float(each.mean()), low=low, high=high)
