"""Give an account of a circuit: what its roles hold, and what each of its parts brings.

Rows that form paths are patched path by path. Rows that form none (by position, by place) are
patched whole; where that moves an answer, reader by reader and source by source, so that it can be
said what is fetched there, and from where. Where no symbol moves an answer, the part brings its
mean instead (`hopscope.tracing.averaging`): it may tell a place.
"""

from collections.abc import Sequence

import numpy as np

from hopscope.circuits.account import Account, Holdings
from hopscope.circuits.adapters import AnyModel, adapter_of
from hopscope.circuits.attention import role_maps
from hopscope.circuits.carrying import Site
from hopscope.circuits.circuit import Circuit, check_circuit
from hopscope.circuits.exam import Questions
from hopscope.circuits.maps import RoleMaps
from hopscope.circuits.parts import Part
from hopscope.circuits.probe import Probe
from hopscope.circuits.probing import probe
from hopscope.configs import Discovery
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.theory import Path
from hopscope.tracing.averaging import averaged
from hopscope.tracing.pairs import pairs_of
from hopscope.tracing.patched import walkable
from hopscope.tracing.patching import EXAMPLES, cargo


def accounted(
    model: AnyModel,
    circuit: Circuit,
    task: Questions | None = None,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> Circuit:
    """The circuit with its account, measured on its model; `task` is the circuit's own, unless
    told. `examples` are the pairs on which parts are patched.
    """
    check_circuit(circuit)
    questions = task or circuit.task
    if questions is None:
        raise CircuitError("the circuit names no task: say which examples to explain it on")
    adapter = adapter_of(model)
    circuit.check_model(adapter.digest())
    pairs = pairs_of(questions, examples, seed)
    whole = cargo(adapter, pairs, _sites(circuit))
    single = cargo(adapter, pairs, [
        site
        for part in circuit.parts if not part.paths
        for its in whole if its.symbols and its.site == _row(part)
        for site in _single(part, circuit.roles)
    ])  # fmt: skip
    account = Account(
        holdings=holdings_of(probe(adapter, questions, seed=seed, heads=False)),
        cargo=(*whole, *single),
        examples=examples,
    )
    silent = [_row(part) for part in circuit.parts if not account.symbols(part)]
    settings = circuit.switches.settings or Discovery()  # of patches in a language model: none
    means = averaged(walkable(adapter), pairs.exam, silent, settings)
    idle = _idle(role_maps(adapter, pairs.exam), circuit, settings.path_share)
    account = account.model_copy(update={"averaged": means, "idle": idle})
    return circuit.model_copy(update={"account": account})


def holdings_of(found: Probe) -> Holdings:
    """A probe as a circuit keeps it."""
    numbers = found.to_dict()["stream"]["own"]
    return Holdings(roles=found.roles, symbols=found.symbols, shares=numbers)


def _idle(maps: RoleMaps, circuit: Circuit, share: float) -> tuple[Path, ...]:
    """What roles look at in their own chain, beside the paths of the circuit."""
    found = np.argwhere(maps.own >= share)
    paths = [
        Path(int(layer), int(head), maps.roles[reader], maps.roles[source])
        for layer, head, reader, source in found
        if reader != source and maps.roles[source].kind != "other"
    ]
    return tuple(path for path in paths if path not in circuit.paths)


def _sites(circuit: Circuit) -> list[Site]:
    return [
        site
        for part in circuit.parts
        for site in ([Site.of(path) for path in part.paths] or [_row(part)])
    ]


def _row(part: Part) -> Site:
    return Site(layer=part.layer, heads=(part.head, *part.also), readers=part.readers)


def _single(part: Part, roles: Sequence[Role]) -> list[Site]:
    return [
        Site(
            layer=part.layer,
            heads=(part.head, *part.also),
            readers=(reader,),
            source=source,
            chain=chain,
        )
        for reader in part.readers
        for source in roles
        for chain in ("own", "others")
    ]
