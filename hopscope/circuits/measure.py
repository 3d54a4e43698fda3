"""The numbers of a circuit, on fresh examples in several batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hopscope.circuits.ablation import Ablation, Head
from hopscope.circuits.bench import Bench
from hopscope.circuits.circuit import Estimate, Kind, Losses, Part, Restored, Shared
from hopscope.circuits.mechanism import Mechanism
from hopscope.circuits.probe import Questions, probe_of
from hopscope.circuits.search import Limits, Search, State, without
from hopscope.circuits.settling import FLOOR, THREEFOLD, Draft, Kept, Step, locates, shared_steps
from hopscope.circuits.subject import Subject, Whole

BATCHES = 20
"""Batches of fresh examples, each of which votes on every part."""
NORMAL_95 = 1.96

WITHOUT = {"without": "ideal", "own without": "own", "alone": "clean"}
"""What a part is taken from → the state that has it."""

Name = tuple[str, int | Head | None]
Measured = dict[Name, Float[np.ndarray, "batch example hop"]]


@dataclass(frozen=True)
class Findings:
    """What was measured."""

    losses: Losses
    parts: tuple[Part, ...]
    restored: tuple[Restored, ...]
    shared: tuple[Shared, ...]


def measure(
    search: Search, questions: Questions, draft: Draft, examples: int, seed: int
) -> Findings:
    """Losses of the circuit, of it without each part, and with each idle head restored."""
    states = _states(draft, search)
    losses = _losses(search.bench.subject, questions, list(states.values()), examples, seed)
    of = dict(zip(states, losses, strict=True))
    guess = search.bench.probe.guess
    floor = FLOOR * guess
    return Findings(
        _summary(of, guess),
        tuple(
            _part(part, _of_part(of, number), locates(part, draft.parts), floor)
            for number, part in enumerate(draft.parts)
        ),
        tuple(
            Restored(layer=head[0], head=head[1], loss=float(of["restored", head].mean()))
            for head in _idle(draft)
        ),
        tuple(
            _shared(step, parts, of["step", number])
            for number, (step, parts) in enumerate(shared_steps(draft).items())
        ),
    )


def _states(draft: Draft, search: Search) -> dict[Name, State]:
    """Everything that is measured, by name."""
    ablated = {head: Mechanism(rest=m.rest) for head, m in draft.ideal.items()}
    lesser: dict[Name, State] = {
        (name, number): state
        for number, part in enumerate(draft.parts)
        for name, state in zip(WITHOUT, draft.without(part, search), strict=True)
    }
    steps: dict[Name, State] = {
        ("step", number): without(draft.ideal, [row for part in parts for row in part.rows])
        for number, parts in enumerate(shared_steps(draft).values())
    }
    return {
        ("clean", None): {},
        ("ideal", None): draft.ideal,
        ("own", None): draft.own,
        ("ablated", None): ablated,
        **lesser,
        **steps,
        **{("restored", head): _untouched(draft.ideal, head) for head in _idle(draft)},
    }


def _idle(draft: Draft) -> list[Head]:
    return [head for head, mechanism in draft.ideal.items() if not mechanism.aims]


def _untouched(state: State, head: Head) -> State:
    return {at: mechanism for at, mechanism in state.items() if at != head}


def _losses(
    subject: Subject | Whole, questions: Questions, states: list[State], examples: int, seed: int
) -> Float[np.ndarray, "state batch example hop"]:
    fresh = probe_of(questions, BATCHES * examples, seed + 1)
    found = Bench(subject, fresh).losses([Ablation.of(state) for state in states])
    losses: np.ndarray = found.unflatten(1, (BATCHES, examples)).double().cpu().numpy()
    return losses


def _summary(of: Measured, guess: float) -> Losses:
    clean, ideal, own, ablated = (
        tuple(float(x) for x in of[name, None].mean((0, 1)))
        for name in ("clean", "ideal", "own", "ablated")
    )
    limit = Limits.of(np.array(clean), guess).mean
    return Losses(clean=clean, ideal=ideal, own=own, ablated=ablated, guess=guess, limit=limit)


def _shared(
    step: Step, parts: list[Kept], losses: Float[np.ndarray, "batch example hop"]
) -> Shared:
    heads = tuple(part.head for part in parts)
    return Shared(reader=step[0], source=step[1], heads=heads, cost=_estimate(losses))


Pairs = list[tuple[Float[np.ndarray, "batch example hop"], Float[np.ndarray, "batch example hop"]]]


def _of_part(of: Measured, number: int) -> Pairs:
    """Losses without the part and with it, in each state."""
    return [(of[name, number], of[base, None]) for name, base in WITHOUT.items()]


def _part(part: Kept, pairs: Pairs, locating: bool, floor: float) -> Part:
    batches = [less.mean((1, 2)) / np.maximum(whole.mean((1, 2)), floor) for less, whole in pairs]
    overall = [float(less.mean()) / max(float(whole.mean()), floor) for less, whole in pairs]
    kind = _kind(part, overall, locating)
    cost, own_cost, alone_cost = (_estimate(less) for less, _ in pairs)
    return Part(
        layer=part.head[0],
        head=part.head[1],
        readers=tuple(role for _, role in part.rows),
        paths=part.paths,
        kind=kind,
        cost=cost,
        own_cost=own_cost,
        alone_cost=alone_cost,
        votes=float(
            np.mean([_kind(part, b, locating) == kind for b in zip(*batches, strict=True)])
        ),
    )


def _kind(part: Kept, ratios: Sequence[float], locating: bool) -> Kind:
    """What the part is, from how many times higher the loss is without it."""
    told, *free = ratios
    if told >= THREEFOLD:
        return "carries"
    if locating and max(free) >= THREEFOLD:
        return "locates"
    return "weak" if part.paths else "background"


def _estimate(losses: Float[np.ndarray, "batch example hop"]) -> Estimate:
    """The mean loss of an example, with the interval of a normal law."""
    each = losses.mean(-1).flatten()
    mean = each.mean()
    half = NORMAL_95 * each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0
    return Estimate(mean=float(mean), low=float(mean - half), high=float(mean + half))
