"""Mechanisms become attention: an aim, painted onto the positions of a probe's examples."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits.mechanism import FROM_MODEL, ITSELF, Aim, Mechanism, Target
from hopscope.circuits.probe import Probe
from hopscope.errors import CircuitError
from hopscope.facts import Role

PAINTINGS = 4096
"""Mechanisms that are kept drawn."""

Rows = tuple[Float[Tensor, "batch read seq"], Bool[Tensor, "batch read"]]


@dataclass(frozen=True)
class Painting:
    """A mechanism's attention as far as it does not depend on the model, and where it does."""

    fixed: Float[Tensor, "batch seq seq"]
    from_model: tuple[tuple[Target, Bool[Tensor, "batch seq"]], ...]
    untouched: bool
    """Is every row as the model has it?"""


class Painter:
    """Draws the attention of mechanisms for one probe, and keeps what it has drawn."""

    def __init__(self, probe: Probe, causal: bool) -> None:
        self.probe = probe
        length, device = probe.length, probe.inputs.device
        seen = torch.ones(length, length, dtype=torch.bool, device=device)
        self.seen = seen.tril() if causal else seen
        chain = probe.roles.chain
        self.same_chain = chain[:, :, None] == chain[:, None, :]
        self._aims: dict[Aim, Rows] = {}
        self._paintings: dict[Mechanism, Painting] = {}

    def attention(
        self, mechanism: Mechanism, own: Float[Tensor, "batch read seq"]
    ) -> Float[Tensor, "batch read seq"]:
        """What the head attends to under the mechanism; `own` is what the model would."""
        painting, read = self.painting(mechanism), own.shape[-2]
        if painting.untouched:
            return own
        pattern = painting.fixed[:, -read:].to(own.dtype)
        for target, rows in painting.from_model:
            theirs = self._from_model(target, own)
            pattern = torch.where(rows[:, -read:, None], theirs, pattern)
        return pattern

    def painting(self, mechanism: Mechanism) -> Painting:
        """What of the mechanism can be drawn without the model."""
        if mechanism not in self._paintings:
            if len(self._paintings) == PAINTINGS:
                self._paintings.pop(next(iter(self._paintings)))
            self._paintings[mechanism] = self._paint(mechanism)
        return self._paintings[mechanism]

    def _paint(self, mechanism: Mechanism) -> Painting:
        readers: dict[Aim, Bool[Tensor, "batch seq"]] = {}
        rest = torch.ones_like(self.same_chain[..., 0])
        for role, aim in mechanism.aims:
            of_role = self._readers(role)
            readers[aim] = readers[aim] | of_role if aim in readers else of_role
            rest = rest & ~of_role
        readers[mechanism.rest] = readers.get(mechanism.rest, torch.zeros_like(rest)) | rest
        # Who cannot see its target stays where it is: in token sequences the target may be the
        # reader itself, which has only one role.
        fixed = self.rows(ITSELF)[0]
        from_model = []
        for aim, rows in readers.items():
            target = aim.targets[0]
            if target.where in FROM_MODEL:
                from_model.append((target, rows))
            else:
                drawn, possible = self.rows(aim)
                fixed = torch.where((rows & possible)[..., None], drawn, fixed)
        untouched = any(t.where == "model" and bool(rows.all()) for t, rows in from_model)
        return Painting(fixed, tuple(from_model), untouched)

    def rows(self, aim: Aim) -> Rows:
        """What every row looks like under the aim, and whether it sees any target at all."""
        if aim not in self._aims:
            weights = torch.zeros((), device=self.seen.device)
            for target, weight in aim.parts:
                at = (self._target(target) & self.seen).float()
                weights = weights + weight * at / at.sum(-1, keepdim=True).clamp_min(1)
            total = weights.sum(-1, keepdim=True)
            self._aims[aim] = (weights / total.clamp_min(1e-9), total[..., 0] > 0)
        return self._aims[aim]

    def _from_model(
        self, target: Target, own: Float[Tensor, "batch read seq"]
    ) -> Float[Tensor, "batch read seq"]:
        if target.where == "model":
            return own
        if target.role is None:
            return own.mean(0, keepdim=True).expand_as(own)
        # Rows at the same position, whose chain has the role at the same place, share a mean.
        place = self._place(target.role)[:, -own.shape[-2] :]
        sums = torch.einsum("brp,brs->rps", place, own)
        mean = sums / place.sum(0).clamp_min(1)[..., None]
        return torch.einsum("brp,rps->brs", place, mean)

    def _place(self, role: Role) -> Float[Tensor, "batch seq place"]:
        """For every row, where its chain has the role first; a place of its own for nowhere."""
        there = self._readers(role)[:, None, :] & self.same_chain
        nowhere = ~there.any(-1)
        first = there.byte().argmax(-1).masked_fill(nowhere, self.probe.length)
        return torch.nn.functional.one_hot(first, self.probe.length + 1).float()

    def _readers(self, role: Role) -> Bool[Tensor, "batch seq"]:
        return self.probe.positions(role).bool()

    def _target(self, target: Target) -> Bool[Tensor, "batch seq seq"]:
        """Who counts as the target, for every row."""
        everyone = torch.ones_like(self.same_chain)
        if target.where == "uniform":
            return everyone
        if target.where == "itself":
            return everyone & torch.eye(self.probe.length, device=everyone.device).bool()
        if target.where == "previous":
            back = torch.ones(self.probe.length - 1, device=everyone.device)
            return everyone & torch.diag(back, -1).bool()
        if target.role is None:
            raise CircuitError(f"the target {target.where!r} needs a role")
        of_role = self._readers(target.role)[:, None, :] & everyone
        if target.where == "own":
            return of_role & self.same_chain
        if target.where == "elsewhere":
            return ~(of_role & self.same_chain)
        return of_role if target.where == "all" else of_role & ~self.same_chain
