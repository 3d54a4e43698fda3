"""What a head might be doing for one reading role: aims read off its role map, in three waves.

1. the simple ones: nothing, one role of the own chain, itself, the position before, one role of
   all chains, or a mixture of two;
2. what the model does on average at that position, whatever the symbols are;
3. mixtures of three and more, the whole row of the map, and what the model does on average, given
   its position and where a role of the own chain stands.

Inside a wave the simplest comes first.
"""

from hopscope.circuits.maps import RoleMaps
from hopscope.circuits.mechanism import (
    BY_POSITION,
    ITSELF,
    PREVIOUS,
    UNIFORM,
    Aim,
    Target,
    aim,
)
from hopscope.circuits.state import Row
from hopscope.configs import Discovery
from hopscope.facts import Role


def hypotheses(maps: RoleMaps, row: Row, settings: Discovery) -> list[list[Aim]]:
    """Aims that could explain the row, wave after wave, without doubles."""
    (layer, head), reader = row
    weights = _weights(maps, row)
    ranked = sorted(weights, key=lambda target: (-weights[target], str(target)))
    two, three, every = (_mixture(weights, ranked[:n], settings.mixed) for n in (2, 3, None))
    named = [t for t in ranked if _names_one(t, reader) and weights[t] >= settings.noticed]
    strong = [Aim(((t, 1.0),)) for t in named if weights[t] >= settings.strong]
    single = [Aim(((t, 1.0),)) for t in named]
    across = [r for r in maps.roles if _in_all_chains(weights, r) >= settings.noticed]
    number = maps.roles.index(reader)
    if maps.itself[layer, head, number] >= settings.noticed:
        single.append(ITSELF)
    if maps.previous[layer, head, number] >= settings.noticed:
        single.append(PREVIOUS)
    placed = [aim("place", role) for role in maps.roles if role.kind == "value"]
    simple = dict.fromkeys([*strong, UNIFORM, *single, *(aim("all", r) for r in across), two])
    rest = dict.fromkeys([three, every, *placed])
    return [list(simple), [BY_POSITION], [a for a in rest if a not in simple]]


def _weights(maps: RoleMaps, row: Row) -> dict[Target, float]:
    """How much attention the reader gives to each role, of its own chain and of the others."""
    (layer, head), reader = row
    number = maps.roles.index(reader)
    found = {}
    for key, role in enumerate(maps.roles):
        found[Target("own", role)] = float(maps.own[layer, head, number, key])
        found[Target("others", role)] = float(maps.others[layer, head, number, key])
    return {target: weight for target, weight in found.items() if weight > 0}


def _names_one(target: Target, reader: Role) -> bool:
    """Is it a role of the own chain, and not the reader's own?"""
    return target.where == "own" and target.role != reader


def _in_all_chains(weights: dict[Target, float], role: Role) -> float:
    return weights.get(Target("own", role), 0.0) + weights.get(Target("others", role), 0.0)


def _mixture(weights: dict[Target, float], targets: list[Target], least: float) -> Aim:
    """These targets, as the row weighs them, without those that get too little."""
    kept = [target for target in targets if weights[target] >= least] or targets[:1]
    total = sum(weights[target] for target in kept)
    return Aim(tuple((target, weights[target] / total) for target in kept))


def strongest(maps: RoleMaps, row: Row, share: float) -> Role | None:
    """The role of the own chain that gets most of the reader's attention, if it gets this share."""
    (layer, head), reader = row
    attention = maps.own[layer, head, maps.roles.index(reader)]
    most = int(attention.argmax())
    source = maps.roles[most]
    strong = float(attention[most]) >= share and source != reader and source.kind != "other"
    return source if strong else None
