"""Ablations as data, many at once.

An ablation says for some heads what to do instead: follow a mechanism, or carry the mean of what
they usually carry, or what they carry in another example. A set of ablations is walked through
the layers together: those that agree up to a layer share one residual stream up to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.mechanism import Mechanism
from hopscope.circuits.patterns import Painter
from hopscope.circuits.probe import Probe
from hopscope.circuits.subject import Subject, Whole
from hopscope.errors import CircuitError
from hopscope.models import Edits, HeadEdit

Head = tuple[int, int]
"""Layer and head, counted from 0."""

AT_ONCE = 64
"""Ablations that walk together."""
STACKED_ROWS = 16_384
"""Positions that one call of a layer computes, unless a single ablation needs more."""


@dataclass(frozen=True, order=True)
class Carried:
    """Instead of what a head carries: its mean over the examples, or another example's."""

    instead: Literal["mean", "resample"]


Change = Mechanism | Carried

Changes = tuple[tuple[int, Change], ...]
"""What is changed in one layer: head, and what it does instead."""


@dataclass(frozen=True)
class Ablation:
    """What is changed, head by head."""

    changes: tuple[tuple[Head, Change], ...] = ()

    @classmethod
    def of(cls, changes: Mapping[Head, Change]) -> "Ablation":
        return cls(tuple(sorted(changes.items(), key=lambda item: item[0])))

    def at(self, layer: int) -> Changes:
        """The changes in one layer."""
        return tuple((head, change) for (at, head), change in self.changes if at == layer)


Group = tuple[Tensor, list[int]]
"""A residual stream, and the numbers of the ablations that share it."""
Job = tuple[Tensor, Changes, list[int]]


class Bench:
    """A subject and a probe, and everything measured on them with heads changed."""

    def __init__(self, subject: Subject | Whole, probe: Probe) -> None:
        self.subject, self.probe = subject, probe.on(subject.device)
        self.painter = Painter(self.probe, subject.causal)

    @torch.no_grad()
    def losses(self, ablations: Sequence[Ablation]) -> Float[Tensor, "variant batch hop"]:
        """The loss of every example and hop under every ablation."""
        for ablation in ablations:
            self._check(ablation)
        if isinstance(self.subject, Whole):
            return torch.stack([self._whole(self.subject, ablation) for ablation in ablations])
        found: list[Tensor | None] = [None] * len(ablations)
        # Neighbours in this order agree in their first layers.
        order = sorted(range(len(ablations)), key=lambda n: self._spelled(ablations[n]))
        for start in range(0, len(order), AT_ONCE):
            part = order[start : start + AT_ONCE]
            for number, losses in self._walk(self.subject, [ablations[n] for n in part]):
                found[part[number]] = losses
        return torch.stack([losses for losses in found if losses is not None])

    def _spelled(self, ablation: Ablation) -> list[str]:
        return [repr(ablation.at(layer)) for layer in range(self.subject.layers)]

    def _whole(self, subject: Whole, ablation: Ablation) -> Float[Tensor, "batch hop"]:
        """One ablation from the first layer to the last."""
        if _is_carried(ablation):
            raise CircuitError(
                "what heads carry cannot be replaced through a whole model's function: replace "
                "their attention, or write an adapter that walks"
            )

        def edit(layer: int, pattern: Tensor) -> Tensor:
            edits = self._edits([ablation.at(layer)], [])
            return pattern if edits.attention is None else edits.attention(layer, pattern)

        return self.probe.losses(subject.outputs(self.probe.inputs, edit))

    def _walk(
        self, subject: Subject, ablations: list[Ablation]
    ) -> Iterable[tuple[int, Float[Tensor, "batch hop"]]]:
        numbers = list(range(len(ablations)))
        groups: list[Group] = [(subject.enter(self.probe.inputs), numbers)]
        clean = groups[0][0] if any(_is_carried(ablation) for ablation in ablations) else None
        for layer in range(subject.layers):
            read = subject.answers_at() if layer == subject.layers - 1 else None
            carried: list[Tensor] = []
            if clean is not None:
                clean = subject.layer(layer, clean, Edits(heads=_noting(carried)), read)
            jobs = self._split(groups, ablations, layer)
            groups = self._layer(subject, jobs, (layer, read), carried)
        for x, members in groups:
            losses = self.probe.losses(subject.leave(x))
            yield from ((number, losses) for number in members)

    def _split(self, groups: list[Group], ablations: list[Ablation], layer: int) -> list[Job]:
        """Groups part where their ablations do."""
        jobs: list[Job] = []
        for x, members in groups:
            parted: dict[Changes, list[int]] = {}
            for number in members:
                parted.setdefault(ablations[number].at(layer), []).append(number)
            jobs += [(x, changes, numbers) for changes, numbers in parted.items()]
        return jobs

    def _layer(
        self, subject: Subject, jobs: list[Job], at: tuple[int, int | None], carried: list[Tensor]
    ) -> list[Group]:
        """All jobs through one layer, as many at a time as fill a call.

        Those whose heads are all drawn need no attention of the model's.
        """
        drawn: list[Job] = []
        rest: list[Job] = []
        for job in jobs:
            (drawn if self._drawn(job[1]) else rest).append(job)
        size = max(1, STACKED_ROWS // (len(self.probe) * self.probe.length))
        after: list[Group] = []
        for some in (drawn, rest):
            for start in range(0, len(some), size):
                part = some[start : start + size]
                changes = [change for _, change, _ in part]
                edits = self._given(changes) if some is drawn else self._edits(changes, carried)
                x = torch.cat([x for x, _, _ in part]) if len(part) > 1 else part[0][0]
                out = subject.layer(at[0], x, edits, at[1]).split(len(self.probe))
                after += [(x, numbers) for x, (_, _, numbers) in zip(out, part, strict=True)]
        return after

    def _drawn(self, changes: Changes) -> bool:
        """Does every head of the layer follow a mechanism that does not depend on the model?"""
        if len(changes) < self.subject.heads:
            return False
        return all(
            isinstance(change, Mechanism) and not self.painter.painting(change).from_model
            for _, change in changes
        )

    def _given(self, changes: list[Changes]) -> Edits:
        """All attention of the jobs, as drawn."""
        rows = [self.painter.painting(m).fixed for part in changes for _, m in sorted_heads(part)]
        stacked = torch.stack(rows).unflatten(0, (len(changes), self.subject.heads))
        return Edits(given=stacked.transpose(1, 2).flatten(0, 1))

    def _edits(self, changes: list[Changes], carried: list[Tensor]) -> Edits:
        """One edit for all jobs that are stacked along the batch."""
        size = len(self.probe)
        every = [(job, head, change) for job, part in enumerate(changes) for head, change in part]

        def attention(_: int, pattern: Tensor) -> Tensor:
            pattern = pattern.clone()
            for job, head, change in every:
                if isinstance(change, Mechanism):
                    rows = pattern[job * size : (job + 1) * size, head]
                    rows.copy_(self.painter.attention(change, rows))
            return pattern

        def heads(_: int, mixed: Tensor) -> Tensor:
            mixed = mixed.clone()
            for job, head, change in every:
                if isinstance(change, Carried):
                    usual = carried[0][:, head]
                    instead = usual.mean(0) if change.instead == "mean" else usual.roll(1, 0)
                    mixed[job * size : (job + 1) * size, head] = instead
            return mixed

        kinds = {type(change) for _, _, change in every}
        return Edits(attention if Mechanism in kinds else None, heads if Carried in kinds else None)

    def _check(self, ablation: Ablation) -> None:
        for head, _ in ablation.changes:
            check_head(self.subject, head)


def sorted_heads(changes: Changes) -> list[tuple[int, Mechanism]]:
    """The mechanisms of a layer whose heads all follow one, in the order of the heads."""
    found = [(head, change) for head, change in changes if isinstance(change, Mechanism)]
    return sorted(found, key=lambda item: item[0])


def check_head(subject: Subject | Whole, head: Head) -> None:
    """Is there such a head?"""
    if not (0 <= head[0] < subject.layers and 0 <= head[1] < subject.heads):
        raise CircuitError(
            f"there is no head {head[0]}.{head[1]}; this model has layers 0 … "
            f"{subject.layers - 1} with heads 0 … {subject.heads - 1}"
        )


def _is_carried(ablation: Ablation) -> bool:
    return any(isinstance(change, Carried) for _, change in ablation.changes)


def _noting(carried: list[Tensor]) -> HeadEdit:
    def note(_: int, mixed: Tensor) -> Tensor:
        carried.append(mixed)
        return mixed

    return note
