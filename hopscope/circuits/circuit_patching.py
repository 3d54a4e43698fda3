"""Patch every component of a circuit: which symbols it brings; and probe its roles.

Components with paths are patched path by path. Components without paths (such as heads that attend
by position) are patched as a whole. If that moves an answer, they are also patched for each
destination and source alone, to find what they bring, and from where.

If no symbol moves an answer, the component is mean-ablated instead (`mean_ablate`). A head that
attends by position may matter without moving a symbol: it can mark every position with its place,
which no exchange of symbols shows. Its mean over examples at each position keeps that mark; its
mean over all positions of a role keeps only a constant.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import torch

from hopscope.circuits.account import Account, Averaged, Decodable, Site
from hopscope.circuits.adapters import AnyModel, replaceable
from hopscope.circuits.attention import role_maps
from hopscope.circuits.circuit import Circuit, check_circuit
from hopscope.circuits.components import Component, Estimate
from hopscope.circuits.engine import Adapter, Brought, Stream, as_model, forward
from hopscope.circuits.examples import Examples, Questions, questions_of
from hopscope.circuits.maps import RoleMaps
from hopscope.circuits.patching import EXAMPLES, chunks_of, pairs_of, patch
from hopscope.circuits.probing import probe
from hopscope.circuits.slices import SlicedLosses
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
    whole = patch(adapter, pairs, [
        site
        for component in circuit.components
        for site in ([Site.of(path) for path in component.paths] or [_row(component)])
    ])  # fmt: skip
    single = patch(adapter, pairs, [
        site
        for component in circuit.components if not component.paths
        for its in whole if its.symbols and its.site == _row(component)
        for site in _single(component, circuit.roles)
    ])  # fmt: skip
    probed = probe(adapter, questions, seed=seed, heads=False)
    shares = probed.stream.model_dump(mode="json")["own"]
    account = Account(
        decodable=Decodable(roles=probed.roles, symbols=probed.symbols, shares=shares),
        patched=(*whole, *single),
        examples=examples,
    )
    silent = [_row(component) for component in circuit.components if not account.symbols(component)]
    means = mean_ablate(adapter, pairs.examples, silent, circuit.losses.gap)
    idle = _unused(role_maps(adapter, pairs.examples), circuit)
    account = account.model_copy(update={"averaged": means, "idle": idle})
    return circuit.model_copy(update={"account": account})


def _unused(maps: RoleMaps, circuit: Circuit) -> tuple[Path, ...]:
    """Paths along which roles attend within their own chain that are not in the circuit."""
    found = np.argwhere(maps.own >= Discovery().noticed)
    paths = [
        Path(int(layer), int(head), maps.roles[destination], maps.roles[source])
        for layer, head, destination, source in found
        if destination != source and maps.roles[source].kind != "other"
    ]
    return tuple(path for path in paths if path not in circuit.paths)


def _row(component: Component) -> Site:
    return Site(layer=component.layer, heads=component.heads, destinations=component.destinations)


def _single(component: Component, roles: Sequence[Role]) -> list[Site]:
    parts = product(component.destinations, roles, ("own", "others"))
    return [
        _row(component).model_copy(
            update={"destinations": (destination,), "source": source, "chain": chain}
        )
        for destination, source, chain in parts
    ]


@torch.no_grad()
def mean_ablate(
    adapter: Adapter, examples: Examples, sites: Sequence[Site], gap: float
) -> tuple[Averaged, ...]:
    """The losses when the output of each site (rows of one layer) is replaced by its mean. `gap` is
    the loss with everything ablated minus the loss of the model.
    """
    if not sites:
        return ()
    read, chunks = examples.read_of(adapter.answers_at()), chunks_of(adapter, examples, 1)
    sliced = SlicedLosses(adapter, examples)

    @lru_cache(maxsize=1)  # consecutive sites are often in the same layer
    def before(layer: int) -> tuple[Stream, Brought]:
        """The stream before a layer, and the outputs of its heads."""
        streams, brought = [], []
        for some in chunks:
            x = adapter.embed(examples.inputs[some].to(adapter.device))
            streams.append(forward(adapter, x, stop=layer))
            brought.append(as_model(layer, adapter.project(layer, streams[-1])))
        return torch.cat(streams), torch.cat(brought)

    def loss(layer: int, brought: Brought) -> Estimate:
        """The loss if the outputs of a layer's heads are replaced by `brought`."""
        stream, ends = before(layer)[0], []
        for some in chunks:
            x = adapter.finish(layer, stream[some], brought[some])
            ends.append(forward(adapter, x, start=layer + 1)[:, -read:])
        losses = sliced.losses(torch.cat(ends))
        return Estimate.of(losses.mean(-1).cpu().double().numpy())

    found, model = [], loss(0, before(0)[1])
    for site in sites:
        by_place, by_role = (
            loss(site.layer, _means(examples, before(site.layer)[1], site, over))
            for over in ((0,), (0, 2))
        )
        found.append(Averaged(site=site, model=model, by_place=by_place, by_role=by_role, gap=gap))
    return tuple(found)


def _means(examples: Examples, brought: Brought, site: Site, over: tuple[int, ...]) -> Brought:
    """The outputs of heads, with the rows of a site replaced by their mean over the dimensions
    `over`: 0 for examples, 2 for positions.
    """
    heads = torch.zeros(brought.shape[1], 1, 1, dtype=torch.bool, device=brought.device)
    heads[list(site.heads)] = True
    found = brought
    for role in site.destinations:
        here = examples.positions(role).to(brought.device)[:, None, :, None]
        total = torch.where(here, brought, 0.0).sum(over, keepdim=True)
        means = total / here.sum(over, keepdim=True).clamp_min(1)
        found = torch.where(here & heads, means, found)
    return found
