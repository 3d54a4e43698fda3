"""What a circuit and each of its components are worth, on fresh examples."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from hopscope.circuits.ablator import Ablator
from hopscope.circuits.components import Component, Estimate, Kind, Losses
from hopscope.circuits.exam import Exam
from hopscope.circuits.pattern import Head, Target
from hopscope.circuits.search import Search, steps_of
from hopscope.circuits.state import Row, State
from hopscope.facts import Role

PerHop = Float[np.ndarray, "example hop"]


def measured(search: Search, fresh: Exam, circuit: State) -> tuple[list[Component], Losses]:
    """Every component with what is lost without it, and the losses of the whole."""
    components = components_of(circuit)
    less = [circuit.without(each.rows) for each in components]
    states = [State(), search.nothing, *(s for c in (circuit, *less) for s in (c, c.computed))]
    ablator = Ablator(search.ablator.adapter, fresh)
    found = ablator.losses([state.ablation for state in states], search.progress)
    model, ablated, prescribed, computed, *each = found.double().cpu().numpy()
    gap = (ablated - model).mean(-1)
    without = zip(components, each[::2], each[1::2], strict=True)
    return [
        _judged(
            component,
            Estimate.ratio((alone - prescribed).mean(-1), gap),
            Estimate.ratio((own - computed).mean(-1), gap),
            search.settings.needed,
        )
        for component, alone, own in without
    ], Losses(
        model=_by_hop(model),
        prescribed=_by_hop(prescribed),
        computed=_by_hop(computed),
        ablated=_by_hop(ablated),
        chance=fresh.guess,
    )


def _judged(
    component: Component, lost: Estimate | None, computed: Estimate | None, needed: float
) -> Component:
    """The component with what is lost without it, and what it is needed for; nothing of either
    where there is no gap.
    """
    if lost is None or computed is None:
        return component
    kind: Kind = "moves" if lost.low > needed else "routes" if computed.low > needed else "weak"
    return component.model_copy(update={"kind": kind, "lost": lost, "lost_computed": computed})


def _by_hop(losses: PerHop) -> tuple[float, ...]:
    return tuple(float(loss) for loss in losses.mean(0))


def components_of(state: State) -> list[Component]:
    """The components of a state, layer by layer: steps of the same heads and target are one."""
    groups: dict[tuple[int, Target, tuple[Head, ...]], list[Role]] = {}
    for rows in steps_of(state):
        for role, heads in _heads_by_role(rows).items():
            layer, head = heads[0]
            target = state[layer, head].of(role)
            groups.setdefault((layer, target, heads), []).append(role)
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


def _heads_by_role(rows: Sequence[Row]) -> dict[Role, tuple[Head, ...]]:
    found: dict[Role, list[Head]] = {}
    for head, role in rows:
        found.setdefault(role, []).append(head)
    return {role: tuple(sorted(heads)) for role, heads in found.items()}
