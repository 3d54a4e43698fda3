"""The components of a circuit, measured on fresh examples: what is lost without each, and what the
model loses without single heads.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopscope.circuits.ablation import Ablation
from hopscope.circuits.ablator import Ablator
from hopscope.circuits.components import (
    Component,
    ComponentKind,
    Estimate,
    HeadAlone,
    Losses,
)
from hopscope.circuits.examples import Examples
from hopscope.circuits.holding import with_holds
from hopscope.circuits.pattern import Head, Target
from hopscope.circuits.scores import Runs
from hopscope.circuits.search import Apart, Search, apart_of, needed_outside, rows_by_step
from hopscope.facts import Role


class _Measured:
    """The losses of states of a model on fresh examples."""

    def __init__(self, search: Search, fresh: Examples) -> None:
        self._ablator = Ablator(search.sketch.adapter, fresh)
        self._progress = search.progress
        self._losses: dict[Ablation, np.ndarray] = {}
        self.measure([Ablation(), search.nothing])
        self._gap = (self._losses[search.nothing] - self._losses[Ablation()]).mean(-1)

    def measure(self, states: Sequence[Ablation]) -> None:
        """Measure states that were not measured yet."""
        new = [state for state in dict.fromkeys(states) if state not in self._losses]
        if new:
            losses = self._ablator.losses(new, self._progress)
            self._losses |= zip(new, losses.double().cpu().numpy(), strict=True)

    def mean(self, state: Ablation) -> tuple[float, ...]:
        """The mean loss of every hop."""
        return tuple(self._losses[state].mean(0).tolist())

    def lost(self, state: Ablation, before: Ablation) -> Estimate | None:
        """The share of the gap that a state loses over the one before; None without a gap."""
        more = self._losses[state] - self._losses[before]
        return Estimate.ratio(more.mean(-1), self._gap)


class Measurement(NamedTuple):
    """What is measured of a circuit besides its scores; for the fields see `Circuit`."""

    components: list[Component]
    losses: Losses
    left_out: tuple[HeadAlone, ...]
    without_weak: tuple[Estimate, Estimate] | None


def measure_components(search: Search, fresh: Examples, circuit: Ablation) -> Measurement:
    """Every component with its kind, how often its rule holds and what is lost without it; the
    losses of the circuit; and what the model loses without heads that the circuit leaves out.
    """
    components = components_of(circuit)
    without = [circuit.without(each.rows) for each in components]
    left_out = needed_outside(search, circuit)
    alone = [state for *_, state in left_out]
    states = [state for its in (circuit, *without) for state in (its, its.computed)]
    states += alone
    apart = [apart_of(search.nothing, each.rows) for each in components]
    states += [state for heads in apart for _, *its in heads for state in its]
    measured = _Measured(search, fresh)
    measured.measure(states)
    found = []
    for component, its, heads in zip(components, without, apart, strict=True):
        lost = measured.lost(its, circuit)
        lost_computed = measured.lost(its.computed, circuit.computed)
        if lost and lost_computed:  # without a gap, a component gets no kind
            judged = {
                "kind": _kind(lost, lost_computed, search.settings.needed),
                "lost": lost,
                "lost_computed": lost_computed,
                "sharing": _sharing(measured, heads),
            }
            component = component.model_copy(update=judged)  # noqa: PLW2901
        found.append(component)
    shares = [measured.lost(state, Ablation()) for state in alone]
    found, without_weak = _weak_together(measured, circuit, found, search.settings.needed)
    return Measurement(
        with_holds(search.sketch.adapter, fresh, found, search.settings.noticed),
        Losses(
            model=measured.mean(Ablation()),
            prescribed=measured.mean(circuit),
            computed=measured.mean(circuit.computed),
            ablated=measured.mean(search.nothing),
            chance=fresh.chance,
            known_ablated=Runs(search.sketch.adapter, fresh).known(search.nothing),
        ),
        tuple(
            HeadAlone(head=head, instead=way, lost=lost)
            for (head, way, _), lost in zip(left_out, shares, strict=True)
            if lost
        ),
        without_weak,
    )


def _weak_together(
    measured: _Measured, circuit: Ablation, components: Sequence[Component], needed: float
) -> tuple[list[Component], tuple[Estimate, Estimate] | None]:
    """The components, of which weak ones have `gained` if not all can be removed; and the shares
    that are lost without all of these, with prescribed and with computed attention. None if fewer
    than two are weak.
    """
    weak = [each for each in components if each.kind == "weak"]
    if len(weak) < 2:
        return [*components], None
    without = circuit.without(row for each in weak for row in each.rows)
    measured.measure([without, without.computed])
    lost = measured.lost(without, circuit)
    lost_computed = measured.lost(without.computed, circuit.computed)
    assert lost is not None  # a component is weak only if there is a gap
    assert lost_computed is not None
    if max(lost.low, lost_computed.low) <= needed:
        return [*components], (lost, lost_computed)
    alone = {
        number: circuit.without(row for its in weak if its is not each for row in its.rows)
        for number, each in enumerate(components)
        if each.kind == "weak"
    }
    measured.measure([state for its in alone.values() for state in (its, its.computed)])
    found = [*components]
    for number, its in alone.items():
        both = (measured.lost(without, its), measured.lost(without.computed, its.computed))
        most = max((gained for gained in both if gained), key=lambda gained: gained.low)
        found[number] = found[number].model_copy(update={"gained": most})
    return found, (lost, lost_computed)


def _kind(lost: Estimate, lost_computed: Estimate, needed: float) -> ComponentKind:
    if lost.low > needed:
        return "moves"
    return "routes" if lost_computed.low > needed else "weak"


def _sharing(measured: _Measured, heads: Sequence[Apart]) -> tuple[HeadAlone, ...]:
    """What the model loses without each head of a component, and gains with it alone."""
    found = []
    for each in heads:
        lost = measured.lost(each.without, Ablation())
        gained = measured.lost(each.none, each.only)
        if lost and gained:
            found.append(HeadAlone(head=each.head, lost=lost, gained=gained))
    return tuple(found)


def components_of(state: Ablation) -> list[Component]:
    """The components of a state, layer by layer. Steps of the same heads to the same target form
    one component.
    """
    groups: dict[tuple[int, Target, tuple[Head, ...]], list[Role]] = {}
    for rows in rows_by_step(state):
        ((layer, _), role), heads = rows[0], tuple(sorted(head for head, _ in rows))
        groups.setdefault((layer, state.target(rows[0]), heads), []).append(role)
    found = [
        Component(
            layer=layer,
            heads=tuple(head for _, head in heads),
            destinations=tuple(roles),
            target=target,
        )
        for (layer, target, heads), roles in groups.items()
    ]
    return sorted(found, key=lambda each: (each.layer, each.heads, each.destinations))
