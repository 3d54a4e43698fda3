"""Proposals of a target for each attention row, from one pass over the model's attention.

For every attention row (one head's attention from all positions of one role), the source with the
most attention is determined. Candidates are the positions to which the task's relations lead, the
positions of other roles (in the own chain, or evenly in all chains), the position before, and the
destination itself. The gain of a source is its attention minus an even share, averaged over
positions from which it can be seen, and it must be noticed from most of them: if a head attends to
one place, whose role and chain differ between examples, no source describes its rows. The next best
source is used where the best leads nowhere. If different sources are best under different
conditions, the target has these conditions.

In a mixture, a source also counts by what it brings: its attention times the length of its value,
as a share of the sum over all positions. So a head that leaves most attention at a place that
brings nothing (a sink) still gets a name for where it looks with the rest.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits.ablation import Row
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import with_values
from hopscope.circuits.components import LEAST_GAP, MOST_ROWS
from hopscope.circuits.engine import Adapter, Weights
from hopscope.circuits.examples import AND, LEADS, SELDOM, Examples
from hopscope.circuits.pattern import Source, Target
from hopscope.circuits.prescriber import Prescriber, Spots, prescriber_of
from hopscope.facts import Role

LONGEST = 3
"""The most alternatives of a target, and the most sources of a mixture."""
MIXED = 0.1
"""Sources with a smaller gain are left out. Shares of mixtures are rounded to tenths, from 0.1."""
ENOUGH = 2_000
"""The number of positions used: with more, no rounded share changes."""


@dataclass(frozen=True)
class Looks:
    """The attention of the rows of one role, in all heads of a layer, to each source."""

    sources: Sequence[Source]
    rows: Float[Tensor, "spot head seq"]
    brings: Float[Tensor, "spot head seq"]
    """What each position brings, as a share of the sum over all positions."""
    masks: Bool[Tensor, "source spot seq"]
    """True at the positions of each source."""
    even: Float[Tensor, "spot"]
    """The attention to one position if attention were even."""
    gets: Float[Tensor, "source spot head"]
    """The attention of each head to each source; to a role of all chains, as much of it as is even:
    what the less attended of the own chain and the others gets, for each position. To a role that
    only stands in other chains it is all."""
    brought: Float[Tensor, "source spot head"]
    """The same of what the positions bring."""
    there: Bool[Tensor, "source spot"]
    """True if the source can be seen from the spot."""

    def gains(
        self, head: int, here: Bool[Tensor, "spot"], *, brought: bool = False
    ) -> Float[Tensor, "source"]:
        """The attention to each source (or what it brings) minus an even share, averaged over the
        spots in `here` from which it can be seen.
        """
        gets = self.brought if brought else self.gets
        return _mean(gets[..., head] - self.by_chance, self.there & here)

    def noticed(
        self, head: int, here: Bool[Tensor, "spot"], least: float
    ) -> Bool[Tensor, "source"]:
        """True for sources that get `least` of what an even share leaves, from most spots."""
        more = self.gets[..., head] >= self.by_chance + least * (1 - self.by_chance)
        return _mean(more.float(), self.there & here) >= MOST_ROWS

    @cached_property
    def by_chance(self) -> Float[Tensor, "source spot"]:
        """The attention to each source if attention were even."""
        return self.masks.sum(-1) * self.even

    def left(
        self, head: int, number: int, here: Bool[Tensor, "spot"], free: Bool[Tensor, "spot seq"]
    ) -> tuple[float, float]:
        """What those positions of a source that are `free` get beyond an even share, of attention
        or of what the head brings (the larger of both), and their attention.
        """
        mask = self.masks[number] & free
        gets, brings = ((its[:, head] * mask).sum(-1) for its in (self.rows, self.brings))
        even = mask.sum(-1) * self.even
        several = torch.stack((gets - even, brings - even, gets))
        beyond, more, share = _mean(several, mask.any(-1) & here).tolist()
        return max(beyond, more), share


def _mean(
    numbers: Float[Tensor, "several spot"], where: Bool[Tensor, "*several spot"]
) -> Float[Tensor, "several"]:
    means: Tensor = (numbers * where).sum(-1) / where.sum(-1).clamp_min(1)
    return means


def proposed_targets(
    examples: Examples, adapter: Adapter | CallbackModel, least: float
) -> dict[Row, list[Target]]:
    """For every row, the targets that describe its attention, the most exact first. Rows without
    such a target are left out.

    Sources with a gain below MIXED are not used, nor are those that are not noticed (`least`),
    unless in a mixture, nor relations that equal attention by position.
    """
    conditions, examples = [*examples.conditions], _with_lookups(examples)
    examples = examples.part(slice(max(8, ENOUGH // examples.length)))
    every = prescriber_of(adapter, examples)
    found: dict[Row, list[Target]] = {}
    for layer, (pattern, values) in enumerate(with_values(adapter, examples.inputs)):
        prescriber = every.of(layer)
        lengths = pattern.new_ones(()) if values is None else values.norm(dim=-1)
        lengths = lengths.expand_as(pattern[:, :, 0])
        for role in examples.table:
            spots = prescriber.spots(role, examples.length)
            if not len(spots):
                continue
            looks = _looks(pattern, lengths, prescriber, spots, role)
            inside = _conditions(examples, conditions, spots)
            for head in range(adapter.heads):
                if targets := _targets_of(looks, head, inside, least):
                    found[(layer, head), role] = targets
    return found


def _conditions(
    examples: Examples, names: Sequence[str], spots: Spots
) -> dict[str, Bool[Tensor, "spot"]]:
    """True at the spots where each condition holds; the empty name has the spots without any
    condition, unless these are rare.
    """
    inside = {name: examples.condition(name)[spots.example, spots.row] for name in names}
    if inside:
        none = ~torch.stack([*inside.values()]).any(0)
        if int(none.sum()) > SELDOM * len(none):
            inside[""] = none
    return inside


def _with_lookups(examples: Examples) -> Examples:
    """The examples without relations that equal attention by position (with a warning)."""
    fixed = [name for name in examples.relations if examples.by_place(name)]
    for name in fixed:
        warnings.warn(
            f"the relation {name!r} leads to the same place or offset in every example: it cannot "
            'be distinguished from "by position" and is ignored; vary lengths or places',
            stacklevel=2,
        )
    return replace(
        examples, relations={n: t for n, t in examples.relations.items() if n not in fixed}
    )


def _targets_of(looks: Looks, head: int, inside: dict[str, Tensor], least: float) -> list[Target]:
    """The targets for one head: first single sources (with conditions, if the best sources differ
    between conditions), then mixtures; the other way round if another source brings more than the
    one that gets most attention (a sink).
    """
    everywhere = torch.ones_like(looks.there[0])
    overall = _chain(looks, head, everywhere, least)
    brought = looks.gains(head, everywhere, brought=True)
    sink = overall and brought[looks.sources.index(overall[0].sources[0])] < brought.max() - MIXED
    each = {name: _chain(looks, head, here, least) for name, here in inside.items()}
    targets: list[Target] = []
    if len({tuple(target.sources for target in chain[:1]) for chain in each.values()}) > 1:
        targets.append(_by_condition(each))
    if overall:
        targets += [_joined(overall), *overall[:1]]
    if targets:
        mixed = {name: _mixtures(looks, head, here) for name, here in inside.items()}
        overall = _mixtures(looks, head, everywhere)
        targets.insert(0 if sink else len(targets), _joined(overall))
        if any(_all_apart(its, overall) for its in mixed.values()):
            targets.append(_by_condition(mixed))
    return list(dict.fromkeys(targets))


def _by_condition(chains: dict[str, list[Target]]) -> Target:
    """One target from the targets of each condition. Conditions with the same targets are merged;
    the targets without a condition, or else those of the most conditions, come last.
    """
    same: dict[tuple[Target, ...], list[str]] = {}
    for name, chain in chains.items():
        same.setdefault(tuple(chain), []).append(name)
    last = max(same, key=lambda chain: ("" in same[chain], bool(chain), len(same[chain])))
    named = [(name, chain) for chain, names in same.items() if chain != last for name in names]
    every = [*(its.if_(_both(name, its)) for name, chain in named for its in chain), *last]
    plain: list[Target] = []
    for its in reversed(every):  # drop a condition if the next target is the same without it
        if not plain or replace(its, when="") != plain[0]:
            plain.insert(0, its)
    return _joined(plain)


def _both(name: str, target: Target) -> str:
    """The name of the condition that `name` and the target's own condition both hold."""
    return AND.join(filter(None, (name, target.when)))


def _apart(one: Target, other: Target) -> bool:
    """True if two mixtures differ in some share by more than what mixtures leave out."""
    here, there = dict(one.parts), dict(other.parts)
    return any(abs(here.get(t, 0.0) - there.get(t, 0.0)) > 1.5 * MIXED for t in {*here, *there})


def _all_apart(several: list[Target], others: list[Target]) -> bool:
    if len(several) != len(others):
        return True
    return any(_apart(one, other) for one, other in zip(several, others, strict=True))


def _joined(targets: Sequence[Target]) -> Target:
    return targets[0].or_else(*targets[1:])


def _chain(looks: Looks, head: int, left: Bool[Tensor, "spot"], least: float) -> list[Target]:
    """The best source at the spots `left`, then the best at those where the first leads nowhere,
    and so on. Each source must lead somewhere from more than a share `SELDOM` of the spots.
    """
    chain: list[Target] = []
    few = SELDOM * int(left.sum())
    while len(chain) < LONGEST and int(left.sum()) > few:
        gains = looks.gains(head, left)
        rare = (looks.there & left).sum(-1) <= few
        gains[rare | ~looks.noticed(head, left, least)] = -1.0
        best = int(gains.argmax())
        if gains[best] < MIXED:
            break
        chain.append(Target(((looks.sources[best], 1.0),)))
        left = left & ~looks.there[best]
    return chain


def _mixtures(looks: Looks, head: int, here: Bool[Tensor, "spot"]) -> list[Target]:
    """The mixture for the spots `here`. If it has a relation, and the mixture is different where
    the relation leads nowhere, there is one for each case.
    """
    whole = _mixture(looks, head, here)
    told = [n for n, source in enumerate(looks.sources) if source in whole.sources]
    led = next((n for n in told if looks.sources[n].relation), None)
    if led is not None:
        there = looks.there[led]
        if int((here & ~there).sum()) > SELDOM * int(here.sum()):
            first, rest = (_mixture(looks, head, here & side) for side in (there, ~there))
            if _apart(first, rest):
                leads = f"{looks.sources[led]}{LEADS}"
                return [first.if_(leads), rest]
    return [whole]


def _mixture(looks: Looks, head: int, here: Bool[Tensor, "spot"]) -> Target:
    """The sources with the largest gains, each without the positions of the sources before it; the
    rest of the attention is uniform.
    """
    free, parts, rest = torch.ones_like(looks.masks[0]), [], 1.0
    gains = looks.gains(head, here).maximum(looks.gains(head, here, brought=True))
    worth = [n for n, gain in enumerate(gains.tolist()) if gain >= MIXED]
    for _ in range(LONGEST):
        found = {n: looks.left(head, n, here, free) for n in worth}
        best = max(found, key=lambda n: found[n][0], default=None)
        if best is None or found[best][0] < MIXED or not rest:
            break
        share = min(max(round(found[best][1], 1), MIXED), rest)
        parts.append((looks.sources[best], share))
        rest = round(rest - share, 1)
        free = free & ~looks.masks[best]
        worth.remove(best)
    return Target((*parts, *([(Source("uniform"), rest)] if rest else [])))


def _looks(
    pattern: Weights,
    lengths: Float[Tensor, "batch head seq"],
    prescriber: Prescriber,
    spots: Spots,
    role: Role,
) -> Looks:
    sources = list(_sources(prescriber, spots, role))
    masks = torch.stack([prescriber.leads(source, spots) for source in sources])
    rows = pattern[spots.example, :, spots.row].float()
    brings = rows * lengths[spots.example].float()
    brings /= brings.sum(-1, keepdim=True).clamp_min(LEAST_GAP)
    even = 1 / prescriber.seen[spots.row].sum(-1)
    gets, brought = (_got(its, sources, masks) for its in (rows, brings))
    return Looks(sources, rows, brings, masks, even, gets, brought, masks.any(-1))


def _got(
    rows: Float[Tensor, "spot head seq"],
    sources: Sequence[Source],
    masks: Bool[Tensor, "source spot seq"],
) -> Float[Tensor, "source spot head"]:
    """What each source gets in each row (see `Looks.gets`)."""
    gets = torch.stack([torch.einsum("shk,sk->sh", rows, mask.float()) for mask in masks])
    many = masks.sum(-1)[..., None]
    for number, source in enumerate(sources):
        if source.where == "all" and Source("own", source.role) in sources:
            own = sources.index(Source("own", source.role))
            rest = (gets[number] - gets[own]) / (many[number] - many[own]).clamp_min(1)
            rest = torch.where(many[number] > many[own], rest, torch.inf)
            gets[number] = many[number] * rest.minimum(gets[own] / many[own].clamp_min(1))
    return gets


def _sources(prescriber: Prescriber, spots: Spots, destination: Role) -> Iterator[Source]:
    """All sources that a row of this role may look at."""
    examples = prescriber.examples
    yield from (Source("relation", None, name, times) for name, times in examples.follows())
    roles = [role for role in examples.table if role != destination]
    own = (Source("own", role) for role in roles)
    yield from (source for source in own if bool(prescriber.places_of(source, spots).any()))
    if bool((examples.roles.chain != examples.roles.chain[:, :1]).any()):
        yield from (Source("all", role) for role in roles)
    yield Source("previous")
    yield Source("itself")
