"""Many ablations in one walk through the layers.

Ablations that agree up to a layer share one residual stream up to it, its attention and what its
heads may carry. Where they part, one of them (the *usual* one, which has every head's most common
change) is computed at all positions, and the others only at the positions whose rows differ from
it. The walk goes on with a few of them to the last layer before it turns to the next, so that what
is alive at a time is bounded by the budget of a call for each layer, whatever their number.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.budget import Kept
from hopscope.circuits.engine import Adapter, record
from hopscope.circuits.exam import Exam
from hopscope.circuits.jobs import (
    UNTOUCHED,
    Changes,
    Group,
    Job,
    Layer,
    Usual,
    from_model,
    in_parts,
    most_common,
    parted,
)
from hopscope.circuits.painter import Painter, Spots
from hopscope.circuits.pattern import Pattern
from hopscope.facts import Role

FEW = 0.25
"""Positions whose rows differ are computed on their own up to this share of all."""


class Walk:
    """A adapter and an exam, and what is kept between one walk and the next."""

    def __init__(self, adapter: Adapter, exam: Exam, painter: Painter, read: int) -> None:
        self.adapter, self.exam, self.painter, self.read = adapter, exam, painter, read
        self._streams = Kept(budget.times(adapter.device) * budget.STREAM_BYTES)
        self._carried: list[Tensor] = []
        self._ask: Callable[[], None] = lambda: None
        self.at_once = 1
        """How many residual streams a call may compute; known once there was one."""

    def losses(
        self, ablations: Sequence[Ablation], ask: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[int, Float[Tensor, "batch hop"]]]:
        """The number of each ablation, and the loss of every example and hop under it."""
        self._ask = ask
        x = self.adapter.embed(self.exam.inputs)
        self.at_once = self._at_once(x)
        changes = [self._by_layer(ablation) for ablation in ablations]
        yield from self._onward(0, [Group(x, (), list(range(len(changes))))], changes)

    def _by_layer(self, ablation: Ablation) -> list[Changes]:
        """What every head of every layer does."""
        changed = dict(ablation.changes)
        layers, heads = range(self.adapter.layers), range(self.adapter.heads)
        return [tuple(changed.get((n, head), UNTOUCHED) for head in heads) for n in layers]

    def _onward(
        self, number: int, groups: list[Group], changes: list[list[Changes]]
    ) -> Iterator[tuple[int, Float[Tensor, "batch hop"]]]:
        """From a layer to the end, a few groups at a time."""
        if number == self.adapter.layers:
            for group in groups:
                losses = self.exam.marks(self.adapter.unembed(group.x))
                yield from ((member, losses) for member in group.members)
            return
        for some in in_parts(groups, self.at_once):
            self._ask()
            for after in self._through(number, some, changes):
                yield from self._onward(number + 1, after, changes)

    def _at_once(self, x: Float[Tensor, "batch seq d_model"]) -> int:
        attention = self.adapter.heads * self.exam.length * x.nbytes // x.shape[-1]
        one = budget.AT_ONCE * attention + budget.WIDTHS * x.nbytes
        return max(1, budget.times(x.device) * budget.CALL_BYTES // one)

    def _through(
        self, number: int, groups: list[Group], changes: list[list[Changes]]
    ) -> Iterator[list[Group]]:
        """Groups through a layer, where they part; a few of what comes out at a time."""
        jobs, known = [], []
        for job in parted(number, groups, changes):
            kept = self._streams.get(job.prefix)
            if kept is None:
                jobs.append(job)
            else:
                known.append(Group(kept, job.prefix, job.members))
        yield from in_parts(known, self.at_once)
        if not jobs:
            return
        layer = self._layer(number, groups, jobs)
        usual = self._usual(layer, jobs)
        for some in in_parts(jobs, self.at_once):
            after = self._after(layer, some, usual)
            if number < self.adapter.layers - 1:
                for group in after:
                    self._streams.put(group.prefix, group.x)
            yield after

    def _layer(self, number: int, groups: list[Group], jobs: list[Job]) -> Layer:
        """Values of all groups, and the attention of those heads of which any job asks for it."""
        last = number == self.adapter.layers - 1
        read = self.read if last else self.exam.length
        x = torch.cat([group.x for group in groups]) if len(groups) > 1 else groups[0].x
        by_head = zip(*(job.changes for job in jobs), strict=True)
        asked = [head for head, its in enumerate(by_head) if any(map(from_model, its))]
        heads = self.adapter.project(number, x)
        patterns: list[Tensor | None] = [None] * len(groups)
        if asked:
            patterns = list(heads.weights(read, asked).split(len(self.exam)))
        values = list(heads.values.split(len(self.exam)))
        return Layer(number, read, groups, asked, patterns, values)

    def _usual(self, layer: Layer, jobs: list[Job]) -> dict[int, Usual]:
        """What is most common in each group, computed for all groups at once."""
        of_group: dict[int, list[Changes]] = {}
        for job in jobs:
            of_group.setdefault(job.group, []).append(job.changes)
        common = {
            group: tuple(most_common(head) for head in zip(*several, strict=True))
            for group, several in of_group.items()
        }
        mixed = [self._mixed(layer, group, changes) for group, changes in common.items()]
        before = [layer.groups[group].x[:, -layer.read :] for group in common]
        after = self._written(layer, before, mixed)
        return {
            group: Usual(changes, its, x)
            for (group, changes), its, x in zip(common.items(), mixed, after, strict=True)
        }

    def _written(
        self, layer: Layer, before: list[Tensor], mixed: list[Tensor]
    ) -> Sequence[Float[Tensor, "batch position d_model"]]:
        if len(before) == 1:
            return [self.adapter.finish(layer.number, before[0], mixed[0])]
        out = self.adapter.finish(layer.number, torch.cat(before), torch.cat(mixed))
        parts: Sequence[Tensor] = out.split(len(before[0]))
        return parts

    def _mixed(
        self, layer: Layer, group: int, changes: Changes
    ) -> Float[Tensor, "batch head read d_head"]:
        """What all heads of a group carry under the changes."""
        values = layer.values[group]
        mixed = values.new_empty(*values.shape[:2], layer.read, values.shape[-1])
        for head, change in enumerate(changes):
            if isinstance(change, Pattern):
                own = layer.own(group, head)
                pattern = self.painter.painted(change, own, layer.read)
                mixed[:, head] = pattern.to(values.dtype) @ values[:, head]
            else:
                usual = self._usually(layer.number)[:, head, -layer.read :]
                mixed[:, head] = usual.mean(0) if change.instead == "mean" else usual.roll(1, 0)
        return mixed

    def _after(self, layer: Layer, jobs: list[Job], usual: dict[int, Usual]) -> list[Group]:
        """The streams after a layer: of the usual changes, of those that differ in a few rows, of
        all others.
        """
        found: dict[int, Tensor] = {}
        whole: list[int] = []
        few: dict[int, list[Role]] = {}
        for number, job in enumerate(jobs):
            base = usual[job.group]
            if job.changes == base.changes:
                found[number] = base.after
                continue
            roles = self._differing(layer, job.changes, base.changes)
            if roles is None:
                whole.append(number)
            elif not roles:
                found[number] = base.after
            else:
                few[number] = roles
        if whole:
            mixed = [self._mixed(layer, jobs[n].group, jobs[n].changes) for n in whole]
            before = [layer.groups[jobs[n].group].x[:, -layer.read :] for n in whole]
            found |= zip(whole, self._written(layer, before, mixed), strict=True)
        if few:
            found |= self._patched(layer, jobs, usual, few)
        return [Group(found[n], job.prefix, job.members) for n, job in enumerate(jobs)]

    def _differing(self, layer: Layer, changes: Changes, usual: Changes) -> list[Role] | None:
        """The roles whose rows are not as usual; None if they have many, or it is not the rows."""
        roles: dict[Role, None] = {}
        for mine, its in zip(changes, usual, strict=True):
            if mine == its:
                continue
            if not (isinstance(mine, Pattern) and isinstance(its, Pattern)):
                return None
            known = self.exam.table
            here, there = dict(mine.targets), dict(its.targets)
            roles |= {
                role: None
                for role in known
                if here.get(role, mine.rest) != there.get(role, its.rest)
            }
        rows = {role: len(self.painter.spots(role, layer.read)) for role in roles}
        if sum(rows.values()) > FEW * layer.read * len(self.exam):
            return None
        return [role for role, count in rows.items() if count]

    def _spots(self, layer: Layer, roles: list[Role]) -> Spots:
        return Spots.of_all([self.painter.spots(role, layer.read) for role in roles])

    def _patched(
        self, layer: Layer, jobs: list[Job], usual: dict[int, Usual], few: dict[int, list[Role]]
    ) -> dict[int, Tensor]:
        """The usual streams, with the rows of some roles computed anew."""
        spots = {number: self._spots(layer, roles) for number, roles in few.items()}
        before, mixed = [], []
        for number, its in spots.items():
            job = jobs[number]
            before.append(layer.groups[job.group].x[its.example, its.row])
            mixed.append(self._mixed_at(layer, job, usual[job.group], (few[number], its)))
        rows = torch.cat(mixed).transpose(0, 1)[None]
        out = self.adapter.finish(layer.number, torch.cat(before)[None], rows)[0]
        found = {}
        for (number, its), part in zip(
            spots.items(), out.split([*map(len, spots.values())]), strict=True
        ):
            found[number] = usual[jobs[number].group].after.clone()
            found[number][its.example, its.read] = part
        return found

    def _mixed_at(
        self, layer: Layer, job: Job, base: Usual, at: tuple[list[Role], Spots]
    ) -> Float[Tensor, "spot head d_head"]:
        """What all heads carry to the rows of some roles."""
        roles, spots = at
        values = layer.values[job.group]
        mixed: Tensor = base.mixed[spots.example, :, spots.read]
        for head, (mine, its) in enumerate(zip(job.changes, base.changes, strict=True)):
            if mine == its:
                continue
            assert isinstance(mine, Pattern)
            own = layer.own(job.group, head)
            pattern = self.painter.painted_rows(mine, roles, own, layer.read)
            # A matrix of the rows of each example: slots that nobody has stay empty.
            rows = values.new_zeros(len(self.exam), spots.width, values.shape[-2])
            rows[spots.example, spots.slot] = pattern.to(values.dtype)
            mixed[:, head] = (rows @ values[:, head])[spots.example, spots.slot]
        return mixed

    def _usually(self, number: int) -> Float[Tensor, "batch head seq d_head"]:
        """What the heads of a layer carry in the model as it is."""
        if not self._carried:
            pass_ = record(self.adapter, self.exam.inputs)
            self._carried = [pass_.brought(layer) for layer in range(self.adapter.layers)]
        return self._carried[number]
