"""The numbers of a circuit, on fresh examples in several batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hopscope.circuits.ablation import Ablation, Bench
from hopscope.circuits.circuit import Estimate, Kind, Losses, Part, Restored
from hopscope.circuits.mechanism import Mechanism
from hopscope.circuits.probe import Questions, probe_of
from hopscope.circuits.search import Limits, Search, State
from hopscope.circuits.settling import FLOOR, THREEFOLD, Draft, Kept, locates
from hopscope.circuits.subject import Subject

BATCHES = 20
"""Resampled batches, each of which votes on every part."""
NORMAL_95 = 1.96

WITHOUT = {"without": "ideal", "own without": "own", "alone": "clean"}
"""What a part is taken from → the state that has it."""

Measured = dict[tuple[object, ...], Float[np.ndarray, "batch example hop"]]


@dataclass(frozen=True)
class Findings:
    """What was measured."""

    losses: Losses
    parts: tuple[Part, ...]
    restored: tuple[Restored, ...]


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
            Restored(layer=key[1][0], head=key[1][1], loss=float(values.mean()))
            for key, values in of.items()
            if key[0] == "restored"
        ),
    )


def _states(draft: Draft, search: Search) -> dict[tuple[object, ...], State]:
    """Everything that is measured, by name."""
    idle = [head for head, mechanism in draft.ideal.items() if not mechanism.aims]
    ablated = {head: Mechanism(rest=m.rest) for head, m in draft.ideal.items()}
    lesser = {
        (name, number): state
        for number, part in enumerate(draft.parts)
        for name, state in zip(WITHOUT, draft.without(part, search), strict=True)
    }
    return {
        ("clean",): {},
        ("ideal",): draft.ideal,
        ("own",): draft.own,
        ("ablated",): ablated,
        **lesser,
        **{("restored", head): _untouched(draft.ideal, head) for head in idle},
    }


def _untouched(state: State, head: tuple[int, int]) -> State:
    return {at: mechanism for at, mechanism in state.items() if at != head}


def _losses(
    subject: Subject, questions: Questions, states: list[State], examples: int, seed: int
) -> Float[np.ndarray, "state batch example hop"]:
    ablations = [Ablation.of(state) for state in states]
    benches = (
        Bench(subject, probe_of(questions, examples, seed + 1 + batch)) for batch in range(BATCHES)
    )
    found = [bench.losses(ablations).double().cpu().numpy() for bench in benches]
    return np.stack(found, axis=1)


def _summary(of: Measured, guess: float) -> Losses:
    clean, ideal, own, ablated = (
        tuple(float(x) for x in of[name,].mean((0, 1)))
        for name in ("clean", "ideal", "own", "ablated")
    )
    limit = Limits.of(np.array(clean), guess).mean
    return Losses(clean=clean, ideal=ideal, own=own, ablated=ablated, guess=guess, limit=limit)


Pairs = list[tuple[Float[np.ndarray, "batch example hop"], Float[np.ndarray, "batch example hop"]]]


def _of_part(of: Measured, number: int) -> Pairs:
    """Losses without the part and with it, in each state."""
    return [(of[name, number], of[base,]) for name, base in WITHOUT.items()]


def _part(part: Kept, pairs: Pairs, locating: bool, floor: float) -> Part:
    batches = [
        less.mean((1, 2)) / np.maximum(whole.mean((1, 2)), floor) for less, whole in pairs
    ]
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
        votes=float(np.mean([_kind(part, b, locating) == kind for b in zip(*batches, strict=True)])),
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
