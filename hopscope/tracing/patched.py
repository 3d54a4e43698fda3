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
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hopscope.circuits import budget
from hopscope.circuits.ablator import check_head
from hopscope.circuits.adapters import subject_of
from hopscope.circuits.carrying import Site, Way
from hopscope.circuits.exam import Exam
from hopscope.circuits.subject import Dissected, Subject, Whole
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.tracing.pairs import Pairs

STILL = 1e-6
"""What moves less than this share of what is brought is not moved at all."""

Answers = Float[Tensor, "batch hop"]


def walkable(model: Subject | Whole | nn.Module) -> Subject:
    """The model, if what its heads carry can be replaced."""
    subject = subject_of(model)
    if isinstance(subject, Whole):
        raise CircuitError(
            "what heads carry cannot be replaced through a whole model's function: write an "
            "adapter that walks"
        )
    return subject


def check_site(subject: Subject, exam: Exam, site: Site) -> None:
    """Refuse a site that is not there."""
    if not site.heads:
        raise CircuitError(f"the site {site} names no head")
    for head in site.heads:
        check_head(subject, (site.layer, head))
    for role in (*site.readers, *([site.source] if site.source else [])):
        exam.number(role)
    if site.relation:
        exam.leads(site.relation, site.times)
        if site.source is not None or site.chain == "others":
            raise CircuitError(
                f"the site {site} comes along a relation; expected no source and no other chain "
                "beside it"
            )


def chunks_of(subject: Subject, exam: Exam, streams: int) -> list[slice]:
    """So many examples at a time as memory allows."""
    one = subject.enter(exam.inputs[:1].to(subject.device)).nbytes
    each = (streams + budget.WIDTHS * subject.layers) * one
    size = max(1, 2 * budget.CALL_BYTES // each)
    return [slice(at, min(at + size, len(exam))) for at in range(0, len(exam), size)]


@dataclass(frozen=True)
class Walked:
    """What an example is before each layer, and what its heads do there."""

    streams: list[Float[Tensor, "batch seq d_model"]]
    patterns: list[Float[Tensor, "batch head seq seq"]]
    values: list[Float[Tensor, "batch head seq d_head"]]


class Patching:
    """Some examples of the pairs, and everything that is patched in them."""

    def __init__(self, subject: Subject, pairs: Pairs, sites: Sequence[Site], some: slice) -> None:
        self.subject, self.pairs, self.sites, self.some = subject, pairs, sites, some
        roles, device = pairs.exam.roles, subject.device
        self.role, self.chain = roles.role[some].to(device), roles.chain[some].to(device)
        self.own = self.walked(pairs.exam.inputs[some])
        self.read = pairs.exam.read_of(subject.answers_at())

    def walked(self, inputs: Tensor) -> Walked:
        """Some inputs, walked through the layers."""
        subject = self.subject
        found = Walked([subject.enter(inputs.to(subject.device))], [], [])
        for layer in range(subject.layers):
            x = found.streams[-1]
            found.patterns.append(subject.look(layer, x, x.shape[1], range(subject.heads)))
            found.values.append(subject.values(layer, x))
            found.streams.append(subject.write(layer, x, found.patterns[-1] @ found.values[-1]))
        return found

    def moved(
        self, variants: Sequence[tuple[int, str]], ways: Sequence[Way]
    ) -> tuple[Answers, Float[Tensor, "mark way variant batch hop"]]:
        """How sure the own example is of its own answers; and how far each variant moves them."""
        donors = {name: self.walked(its[self.some]) for name, its in self.pairs.donors.items()}
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

    def change(self, site: Site, donor: Walked) -> Float[Tensor, "batch some seq d_head"] | None:
        """What the donor brings at a site, less what the own example does; None if the same."""
        here, there = (self._brought(site, its) for its in (self.own, donor))
        readers = self._at(site.readers)[:, None, :, None]
        change = torch.where(readers, there - here, 0.0)
        size = torch.where(readers, here, 0.0).square().sum()
        moved = bool(change.square().sum() > STILL**2 * size)
        return change if moved else None

    def _brought(self, site: Site, its: Walked) -> Float[Tensor, "batch some seq d_head"]:
        heads = list(site.heads)
        pattern = its.patterns[site.layer][:, heads]
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
        mixed = (self.own.patterns[layer] @ self.own.values[layer]).repeat(count, 1, 1, 1)
        every = mixed.unflatten(0, (count, len(x)))
        for number, (some, change) in enumerate(zip(heads, changes, strict=True)):
            every[number, :, list(some)] += change
        out: Tensor = self.subject.write(layer, x.repeat(count, 1, 1), mixed)
        apart: Tensor = out.unflatten(0, (count, len(x)))
        return apart

    def _onward(
        self, layer: int, patched: Float[Tensor, "variant batch seq d_model"], ways: Sequence[Way]
    ) -> list[Float[Tensor, "variant batch seq d_model"]]:
        """The streams at the end, for each way, from those behind the site."""
        count = len(patched)
        free = carried = patched.flatten(0, 1)
        asking = offering = self.own.streams[layer].repeat(count, 1, 1)
        for number in range(layer, self.subject.layers):
            own = self.own.streams[number].repeat(count, 1, 1)
            seen = carried - own
            if len(ways) > 2:
                asking = self._through(number, asking, asking + seen, asking)
                offering = self._through(number, offering, offering, offering + seen)
            free = self._through(number, free, free, free)
            pattern = self.own.patterns[number].repeat(count, 1, 1, 1)
            carried = self._written(number, carried, pattern)
        ends = {"all": free, "values": carried, "queries": asking, "keys": offering}
        return [ends[way].unflatten(0, (count, -1)) for way in ways]

    def _through(self, layer: int, x: Tensor, readers: Tensor, sources: Tensor) -> Tensor:
        """A stream through a layer, with queries and keys of these streams."""
        heads, length = range(self.subject.heads), x.shape[1]
        if readers is sources:
            pattern = self.subject.look(layer, x, length, heads)
        else:
            assert isinstance(self.subject, Dissected)
            pattern = self.subject.match(layer, readers, sources, length, heads)
        return self._written(layer, x, pattern)

    def _written(self, layer: int, x: Tensor, pattern: Tensor) -> Tensor:
        out: Tensor = self.subject.write(layer, x, pattern @ self.subject.values(layer, x))
        return out

    def marks(
        self, x: Float[Tensor, "variant batch seq d_model"]
    ) -> Float[Tensor, "mark variant batch hop"]:
        """Where the answers stand; losses know all examples, so those not here answer zeros."""
        found = self.subject.leave(x[:, :, -self.read :].flatten(0, 1)).unflatten(0, x.shape[:2])
        every = found.new_zeros(len(x), len(self.pairs.exam), *found.shape[2:])
        every[:, self.some] = found
        return self.pairs.marks(every.cpu())[:, :, self.some]
