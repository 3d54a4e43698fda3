"""Patch every component of a circuit: what it brings, beside what its roles hold.

Rows that form paths are patched path by path. Rows that form none (by position) are
patched whole; where that moves an answer, reader by reader and source by source, so that it can be
said what is fetched there, and from where. Where no symbol moves an answer, the component brings
its mean instead (`mean_ablation`): it may tell a place.
"""

from collections.abc import Sequence

import numpy as np

from hopscope.circuits.account import Account, Holdings
from hopscope.circuits.adapters import AnyModel
from hopscope.circuits.attention import role_maps
from hopscope.circuits.circuit import Circuit, check_circuit
from hopscope.circuits.components import Component
from hopscope.circuits.effects import Site
from hopscope.circuits.exam import Questions, questions_of
from hopscope.circuits.maps import RoleMaps
from hopscope.circuits.mean_ablation import mean_ablate
from hopscope.circuits.pairs import pairs_of
from hopscope.circuits.patching import EXAMPLES, patch, replaceable
from hopscope.circuits.probe import Probe
from hopscope.circuits.probing import probe
from hopscope.configs import Discovery
from hopscope.facts import Role
from hopscope.theory import Path


def patch_circuit(
    model: AnyModel,
    circuit: Circuit,
    task: Questions | None = None,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> Circuit:
    """The circuit with its account: every component patched on `examples` minimal pairs of the task
    (default: the circuit's own).
    """
    check_circuit(circuit)
    questions = questions_of(circuit, task)
    adapter = replaceable(model)
    circuit.check_model(adapter.digest())
    pairs = pairs_of(questions, examples, seed)
    whole = patch(adapter, pairs, _sites(circuit))
    single = patch(adapter, pairs, [
        site
        for component in circuit.components if not component.paths
        for its in whole if its.symbols and its.site == _row(component)
        for site in _single(component, circuit.roles)
    ])  # fmt: skip
    account = Account(
        holdings=holdings_of(probe(adapter, questions, seed=seed, heads=False)),
        cargo=(*whole, *single),
        examples=examples,
    )
    silent = [_row(component) for component in circuit.components if not account.symbols(component)]
    means = mean_ablate(adapter, pairs.exam, silent, circuit.losses.gap)
    idle = _unused(role_maps(adapter, pairs.exam), circuit)
    account = account.model_copy(update={"averaged": means, "idle": idle})
    return circuit.model_copy(update={"account": account})


def holdings_of(found: Probe) -> Holdings:
    """A probe as a circuit keeps it."""
    numbers = found.to_dict()["stream"]["own"]
    return Holdings(roles=found.roles, symbols=found.symbols, shares=numbers)


def _unused(maps: RoleMaps, circuit: Circuit) -> tuple[Path, ...]:
    """What roles look at in their own chain, beside the paths of the circuit."""
    found = np.argwhere(maps.own >= Discovery().noticed)
    paths = [
        Path(int(layer), int(head), maps.roles[reader], maps.roles[source])
        for layer, head, reader, source in found
        if reader != source and maps.roles[source].kind != "other"
    ]
    return tuple(path for path in paths if path not in circuit.paths)


def _sites(circuit: Circuit) -> list[Site]:
    return [
        site
        for component in circuit.components
        for site in ([Site.of(path) for path in component.paths] or [_row(component)])
    ]


def _row(component: Component) -> Site:
    return Site(layer=component.layer, heads=component.heads, readers=component.destinations)


def _single(component: Component, roles: Sequence[Role]) -> list[Site]:
    return [
        Site(
            layer=component.layer,
            heads=component.heads,
            readers=(reader,),
            source=source,
            chain=chain,
        )
        for reader in component.destinations
        for source in roles
        for chain in ("own", "others")
    ]
