"""Pairs that are walked, and patched at sites: where answers stand then.

Behind a site, four streams go on from there:

    all      the model as it is
    values   all attention stays that of the own example: what moves is carried
    queries  a stream that is the own example's, but for the queries of its heads, which see the
             stream `values`: once attention has changed, everything follows from that
    keys     the same with keys

Sites of one layer, and all symbols, go through the layers together, from the layer of their site
on: what is before it is the own example's, and computed once.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablator import check_head
from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of
from hopscope.circuits.carrying import Site, Way
from hopscope.circuits.engine import Adapter, Recorded, record
from hopscope.circuits.exam import Exam
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.tracing.pairs import Pairs

STILL = 1e-6
"""What moves less than this share of what is brought is not moved at all."""

Answers = Float[Tensor, "batch hop"]


def walkable(model: AnyModel) -> Adapter:
    """The model, if what its heads carry can be replaced."""
    adapter = adapter_of(model)
    if isinstance(adapter, CallbackModel):
        raise CircuitError(
            "what heads carry cannot be replaced through a whole model's function: write an "
            "adapter that walks"
        )
    return adapter


def check_site(adapter: Adapter, exam: Exam, site: Site) -> None:
    """Refuse a site that is not there."""
    if not site.heads:
        raise CircuitError(f"the site {site} names no head")
    for head in site.heads:
        check_head(adapter, (site.layer, head))
    for role in (*site.readers, *([site.source] if site.source else [])):
        exam.number(role)
    if site.relation:
        exam.leads(site.relation, site.times)
        if site.source is not None or site.chain == "others":
            raise CircuitError(
                f"the site {site} comes along a relation; expected no source and no other chain "
                "beside it"
            )


def chunks_of(adapter: Adapter, exam: Exam, streams: int) -> list[slice]:
    """So many examples at a time as memory allows."""
    one = adapter.embed(exam.inputs[:1].to(adapter.device)).nbytes
    each = (streams + budget.WIDTHS * adapter.layers) * one
    size = max(1, 2 * budget.CALL_BYTES // each)
    return [slice(at, min(at + size, len(exam))) for at in range(0, len(exam), size)]


class Patching:
    """Some examples of the pairs, and everything that is patched in them."""

    def __init__(self, adapter: Adapter, pairs: Pairs, sites: Sequence[Site], some: slice) -> None:
        self.adapter, self.pairs, self.sites, self.some = adapter, pairs, sites, some
        roles, device = pairs.exam.roles, adapter.device
        self.role, self.chain = roles.role[some].to(device), roles.chain[some].to(device)
        self.own = record(adapter, pairs.exam.inputs[some])
        self.read = pairs.exam.read_of(adapter.answers_at())

    def moved(
        self, variants: Sequence[tuple[int, str]], ways: Sequence[Way]
    ) -> tuple[Answers, Float[Tensor, "mark way variant batch hop"]]:
        """How sure the own example is of its own answers; and how far each variant moves them."""
        donors = {
            name: record(self.adapter, its[self.some]) for name, its in self.pairs.donors.items()
        }
        changes = {
            number: change
            for number, (site, name) in enumerate(variants)
            if (change := self.change(self.sites[site], donors[name])) is not None
        }
        del donors
        plain = self.marks(self.own.streams[-1][None])
        sure = plain[1, 0] - plain[0, 0]
        found = sure.new_zeros(2, len(ways), len(variants), *sure.shape)
        by_layer: dict[int, list[int]] = {}
        for number in changes:
            by_layer.setdefault(self.sites[variants[number][0]].layer, []).append(number)
        for layer, numbers in by_layer.items():
            heads = [self.sites[variants[n][0]].heads for n in numbers]
            patched = self._patched(layer, heads, [changes[n] for n in numbers])
            for way, stream in zip(ways, self._onward(layer + 1, patched, ways), strict=True):
                found[:, ways.index(way), numbers] = self.marks(stream) - plain
        return sure, found

    def change(self, site: Site, donor: Recorded) -> Float[Tensor, "batch some seq d_head"] | None:
        """What the donor brings at a site, less what the own example does; None if the same."""
        here, there = (self._brought(site, its) for its in (self.own, donor))
        readers = self._at(site.readers)[:, None, :, None]
        change = torch.where(readers, there - here, 0.0)
        size = torch.where(readers, here, 0.0).square().sum()
        moved = bool(change.square().sum() > STILL**2 * size)
        return change if moved else None

    def _brought(self, site: Site, its: Recorded) -> Float[Tensor, "batch some seq d_head"]:
        heads = list(site.heads)
        pattern = its.weights[site.layer][:, heads]
        if site.source is not None or site.relation:
            pattern = pattern * self._sources(site)[:, None]
        brought: Tensor = pattern @ its.values[site.layer][:, heads]
        return brought

    def _sources(self, site: Site) -> Bool[Tensor, "batch seq seq"]:
        """True where what a site brings comes from, for every reader."""
        if site.source is not None:
            same = self.chain[:, :, None] == self.chain[:, None, :]
            same = same if site.chain == "own" else ~same
            return same & self._at((site.source,))[:, None, :]
        exam = self.pairs.exam
        example = torch.arange(len(exam))[self.some]
        spots = torch.cartesian_prod(example, torch.arange(exam.length))
        leads = exam.sources(site.relation, site.times, *spots.unbind(-1))
        return leads.view(len(example), exam.length, -1).to(self.role.device)

    def _at(self, roles: Sequence[Role]) -> Bool[Tensor, "batch seq"]:
        """Where one of these roles stands."""
        numbers = [self.pairs.exam.table.index(role) for role in roles]
        found: Tensor = torch.isin(self.role, torch.tensor(numbers, device=self.role.device))
        return found

    def _patched(
        self, layer: int, heads: Sequence[tuple[int, ...]], changes: Sequence[Tensor]
    ) -> Float[Tensor, "variant batch seq d_model"]:
        """The streams behind a layer, in each of which some heads bring something else."""
        count, x = len(heads), self.own.streams[layer]
        mixed = (self.own.weights[layer] @ self.own.values[layer]).repeat(count, 1, 1, 1)
        every = mixed.unflatten(0, (count, len(x)))
        for number, (some, change) in enumerate(zip(heads, changes, strict=True)):
            every[number, :, list(some)] += change
        out: Tensor = self.adapter.finish(layer, x.repeat(count, 1, 1), mixed)
        apart: Tensor = out.unflatten(0, (count, len(x)))
        return apart

    def _onward(
        self, layer: int, patched: Float[Tensor, "variant batch seq d_model"], ways: Sequence[Way]
    ) -> list[Float[Tensor, "variant batch seq d_model"]]:
        """The streams at the end, for each way, from those behind the site."""
        count = len(patched)
        free = carried = patched.flatten(0, 1)
        asking = offering = self.own.streams[layer].repeat(count, 1, 1)
        for number in range(layer, self.adapter.layers):
            own = self.own.streams[number].repeat(count, 1, 1)
            seen = carried - own
            if len(ways) > 2:
                asking = self._through(number, asking, asking + seen, asking)
                offering = self._through(number, offering, offering, offering + seen)
            free = self._through(number, free, free, free)
            pattern = self.own.weights[number].repeat(count, 1, 1, 1)
            carried = self._written(number, carried, pattern)
        ends = {"all": free, "values": carried, "queries": asking, "keys": offering}
        return [ends[way].unflatten(0, (count, -1)) for way in ways]

    def _through(self, layer: int, x: Tensor, readers: Tensor, sources: Tensor) -> Tensor:
        """A stream through a layer, with queries and keys of these streams."""
        heads = self.adapter.project(layer, readers)
        keys = None if readers is sources else self.adapter.project(layer, sources)
        return self._written(layer, x, heads.weights(keys=keys))

    def _written(self, layer: int, x: Tensor, pattern: Tensor) -> Tensor:
        out: Tensor = self.adapter.finish(layer, x, pattern @ self.adapter.project(layer, x).values)
        return out

    def marks(
        self, x: Float[Tensor, "variant batch seq d_model"]
    ) -> Float[Tensor, "mark variant batch hop"]:
        """Where the answers stand; losses know all examples, so those not here answer zeros."""
        found = self.adapter.unembed(x[:, :, -self.read :].flatten(0, 1)).unflatten(0, x.shape[:2])
        every = found.new_zeros(len(x), len(self.pairs.exam), *found.shape[2:])
        every[:, self.some] = found
        return self.pairs.marks(every.cpu())[:, :, self.some]
