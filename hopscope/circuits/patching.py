"""Patch minimal pairs: what a site moves or routes, by the answers that follow it.

1. Two chains exchange one symbol, wherever it stands: the *counterfactual*. All else is the same.
2. At one site (what a head brings to a role, or the part that comes from one role), the model's
   own example gets what the counterfactual has there.
3. It is measured how far each answer moves from its own chain's symbol (0) to the other chain's
   (1), against symbols of third chains: an answer that is merely lost does not move at all.

After a site, there are up to four ways on. They are rows of one batch, and differ in attention:

    all      attention is computed from the patched stream: the model as it is
    values   attention stays that of the own example: what reaches the answer was moved
    queries  an unpatched stream, whose heads' queries see what `values` adds to it
    keys     the same with keys
"""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablator import check_head
from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of
from hopscope.circuits.components import Estimate
from hopscope.circuits.effects import KEPT, Effect, Patched, Site, Way
from hopscope.circuits.engine import Adapter, Brought, Heads, Recorded, Weights, forward, record
from hopscope.circuits.exam import Exam, Questions
from hopscope.circuits.pairs import Pairs, pairs_of
from hopscope.errors import CircuitError, NotLearned
from hopscope.facts import Role
from hopscope.intervals import NORMAL_95

EXAMPLES = 64
"""Minimal pairs of examples that are patched, unless told otherwise."""
SURE = 0.3
"""Answers are a model's own if they are nearer to their own chain's symbols than to another's in
all, by this share of what they are nearer or farther in each example; at guessing level it is 0."""
STILL = 1e-6
"""A change smaller than this share of what is brought is rounding."""
WAYS: tuple[Way, ...] = get_args(Way)

Answers = Float[Tensor, "batch hop"]


@torch.no_grad()
def patch(
    model: AnyModel,
    task: Questions | Pairs,
    sites: Sequence[Site],
    examples: int = EXAMPLES,
    seed: int = 0,
) -> tuple[Patched, ...]:
    """What each site brings, and by which way it matters."""
    adapter = replaceable(model)
    pairs = task if isinstance(task, Pairs) else pairs_of(task, examples, seed)
    for site in sites:
        check_site(adapter, pairs.exam, site)
    variants = [(number, name) for number in range(len(sites)) for name in pairs.counterfactuals]
    chunks = chunks_of(adapter, pairs.exam, len(variants) * len(WAYS))
    parts = [Patching(adapter, pairs, sites, some).moved(variants, WAYS) for some in chunks]
    sure = torch.cat([part[0] for part in parts])
    moved = torch.cat([part[1] for part in parts], 3)
    check_answers(sure)
    effects: list[list[Effect]] = [[] for _ in sites]
    for variant, (site_number, symbol) in enumerate(variants):
        for number, way in enumerate(WAYS):
            for column, hop in enumerate(pairs.hops):
                to_other, to_own = moved[:, number, variant, :, column]
                found = effect_of(sure[:, column], to_other, -to_own, symbol, way, hop)
                effects[site_number] += [found] if found else []
    return tuple(
        Patched(site=site, moves=tuple(its)) for site, its in zip(sites, effects, strict=True)
    )


def replaceable(model: AnyModel) -> Adapter:
    """The model, if what its heads bring can be replaced."""
    adapter = adapter_of(model)
    if isinstance(adapter, CallbackModel):
        raise CircuitError(
            "what heads bring cannot be replaced through a CallbackModel; expected an Adapter: "
            "write a BlockAdapter"
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
    """Slices of so many examples at a time as memory allows."""
    one = adapter.embed(exam.inputs[:1].to(adapter.device)).nbytes
    each = (streams + budget.WIDTHS * adapter.layers) * one
    size = max(1, 2 * budget.times(adapter.device) * budget.CALL_BYTES // each)
    return [slice(at, min(at + size, len(exam))) for at in range(0, len(exam), size)]


class Patching:
    """Some examples of the pairs, and everything that is patched in them."""

    def __init__(self, adapter: Adapter, pairs: Pairs, sites: Sequence[Site], some: slice) -> None:
        self.adapter, self.pairs, self.sites, self.some = adapter, pairs, sites, some
        roles, device = pairs.exam.roles, adapter.device
        self.role, self.chain = roles.role[some].to(device), roles.chain[some].to(device)
        self.own = record(adapter, pairs.exam.inputs[some])
        self.read = pairs.exam.read_of(adapter.answers_at())

    def counterfactuals(self) -> dict[str, Recorded]:
        """The pass over the counterfactual of each symbol."""
        every = self.pairs.counterfactuals
        return {name: record(self.adapter, inputs[self.some]) for name, inputs in every.items()}

    def moved(
        self, variants: Sequence[tuple[int, str]], ways: Sequence[Way]
    ) -> tuple[Answers, Float[Tensor, "mark way variant batch hop"]]:
        """How sure the own example is of its own answers; and how far each variant (a site, by
        number, and a symbol) moves them.
        """
        others = self.counterfactuals()
        by_layer: dict[int, dict[int, Tensor]] = {}
        for number, (at, name) in enumerate(variants):
            change = self.change(self.sites[at], others[name])
            if change is not None:
                by_layer.setdefault(self.sites[at].layer, {})[number] = change
        del others
        plain = self.marks(self.own.streams[-1][None])
        sure = plain[1, 0] - plain[0, 0]
        found = sure.new_zeros(2, len(ways), len(variants), *sure.shape)
        for layer, changes in by_layer.items():
            heads = [self.sites[variants[number][0]].heads for number in changes]
            patched = self._patched(layer, heads, list(changes.values()))
            for way, end in enumerate(self._ends(layer + 1, patched, ways)):
                found[:, way, list(changes)] = self.marks(end) - plain
        return sure, found

    def change(self, site: Site, other: Recorded) -> Float[Tensor, "batch some seq d_head"] | None:
        """What the counterfactual brings at a site, less what the own example does; None if it
        brings the same.
        """
        here, there = (self._brought(site, its) for its in (self.own, other))
        readers = self._at(site.readers)[:, None, :, None]
        change = torch.where(readers, there - here, 0.0)
        size = torch.where(readers, here, 0.0).square().sum()
        return change if change.square().sum() > STILL**2 * size else None

    def _brought(self, site: Site, its: Recorded) -> Float[Tensor, "batch some seq d_head"]:
        heads = list(site.heads)
        weights = its.weights[site.layer][:, heads]
        if site.source is not None or site.relation:
            weights = weights * self._sources(site)[:, None]
        brought: Tensor = weights @ its.values[site.layer][:, heads]
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
        """True where one of these roles stands."""
        numbers = [self.pairs.exam.table.index(role) for role in roles]
        found: Tensor = torch.isin(self.role, torch.tensor(numbers, device=self.role.device))
        return found

    def _patched(
        self, layer: int, heads: Sequence[tuple[int, ...]], changes: Sequence[Tensor]
    ) -> Float[Tensor, "variant batch seq d_model"]:
        """The streams after a layer, in each of which some heads bring something else."""
        x = self.own.streams[layer]
        brought = self.own.brought(layer).repeat(len(heads), 1, 1, 1)
        every = brought.unflatten(0, (len(heads), len(x)))
        for number, (some, change) in enumerate(zip(heads, changes, strict=True)):
            every[number, :, list(some)] += change
        out: Tensor = self.adapter.finish(layer, x.repeat(len(heads), 1, 1), brought)
        apart: Tensor = out.unflatten(0, (len(heads), len(x)))
        return apart

    def _ends(
        self, start: int, patched: Float[Tensor, "variant batch seq d_model"], ways: Sequence[Way]
    ) -> Float[Tensor, "way variant batch seq d_model"]:
        """The streams after the last layer, for each way, from those before layer `start`."""
        count, size = len(patched), patched.shape[0] * patched.shape[1]
        rows_of = {way: slice(n * size, (n + 1) * size) for n, way in enumerate(ways)}

        def attend(layer: int, heads: Heads) -> Brought:
            def weights(way: Way) -> Weights:
                if way == "values":
                    return self.own.weights[layer].repeat(count, 1, 1, 1)
                own = heads.rows(rows_of[way])
                if way == "all":
                    return own.weights()
                moved = heads.stream[rows_of["values"]]
                added = moved - self.own.streams[layer].repeat(count, 1, 1)
                seeing = self.adapter.project(layer, own.stream + added)
                asking, offering = (seeing, own) if way == "queries" else (own, seeing)
                return asking.weights(keys=offering)

            values = heads.values.chunk(len(ways))
            return torch.cat([weights(way) @ its for way, its in zip(ways, values, strict=True)])

        after, before = patched.flatten(0, 1), self.own.streams[start].repeat(count, 1, 1)
        rows = torch.cat([after if way in ("all", "values") else before for way in ways])
        end = forward(self.adapter, rows, attend, start)
        apart: Tensor = end.unflatten(0, (len(ways), count, -1))
        return apart

    def marks(
        self, x: Float[Tensor, "variant batch seq d_model"]
    ) -> Float[Tensor, "mark variant batch hop"]:
        """Where the answers stand; losses know all examples, so those not here answer zeros."""
        found = self.adapter.unembed(x[:, :, -self.read :].flatten(0, 1)).unflatten(0, x.shape[:2])
        every = found.new_zeros(len(x), len(self.pairs.exam), *found.shape[2:])
        every[:, self.some] = found
        return self.pairs.marks(every.cpu())[:, :, self.some]


def has_answers(sure: Float[Tensor, "batch *hop"]) -> Bool[Tensor, "*hop"]:
    """True where answers are the model's own: nearer to its own chain's symbols than another's."""
    return sure.sum(0) > SURE * sure.abs().sum(0)


def check_answers(sure: Answers) -> None:
    """Refuse a model whose answers are no more its own chain's than another's."""
    if not has_answers(sure.flatten()):
        raise NotLearned(
            "this model's answers are no nearer to its own chain's symbols than to another's: it "
            "answers at guessing level, so that none can follow; train it further"
        )


def effect_of(
    sure: Float[Tensor, "batch"],
    moved: Float[Tensor, "batch"],
    left: Float[Tensor, "batch"],
    symbol: str,
    way: Way,
    hop: int,
) -> Effect | None:
    """The effect of a patch on an answer; None if it is too small to be kept, or the model has no
    answer of its own.
    """
    share, away = share_of(sure, moved), share_of(sure, left)
    if share is None or away is None or max(abs(share.mean), abs(away.mean)) < KEPT:
        return None
    return Effect(symbol=symbol, way=way, hop=hop, share=share, left=away)


def share_of(sure: Float[Tensor, "batch"], moved: Float[Tensor, "batch"]) -> Estimate | None:
    """How far the answers go from their own (0) to the other chain's (1), with the interval of a
    ratio (delta method). None for a hop of which the model has no answer of its own.
    """
    if not has_answers(sure):
        return None
    part, whole = moved.numpy(), sure.numpy()
    total = float(whole.sum())
    mean = float(part.sum() / total)
    spread = np.square(part - mean * whole).sum() * len(part) / max(1, len(part) - 1)
    half = NORMAL_95 * float(np.sqrt(spread)) / total
    return Estimate(mean=mean, low=mean - half, high=mean + half)
