"""Optimisers, by their name in a recipe.

An optimiser changes the master weights in place. Its state is in vectors with the same layout as
the master. `state` returns views of them by kind and parameter, as in checkpoints, so that a fleet
can be split into its members. To add an optimiser, write a class here and add its name to
`OPTIMISERS` and to `hopscope.configs.Training`.
"""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopscope.configs import Training
from hopscope.training.weights import FlatWeights

MUON_MOMENTUM = 0.95
"""The decay of Muon's momentum (Jordan et al. 2024: 0.95, with Nesterov momentum)."""
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""The coefficients of the iteration that moves all singular values of a matrix close to one."""
ROUNDS = 5


class Optimiser(Protocol):
    """The interface of an optimiser."""

    def step(self) -> None:
        """Update the master weights with their gradient."""

    def set_rate(self, rate: float) -> None:
        """Set the learning rate for the next steps."""

    def state(self) -> dict[str, Tensor]:
        """The optimiser's state, as views by kind and parameter."""

    def resume(self, step: int) -> None:
        """Set the number of steps taken, after `state` was restored."""

    def tensors(self) -> list[Tensor]:
        """All tensors that a step changes in place besides the master."""


class AdamW:
    """AdamW with decoupled weight decay, for the part of the master from index `start` on."""

    MOMENTS = ("exp_avg", "exp_avg_sq")

    def __init__(self, weights: FlatWeights, training: Training, start: int = 0) -> None:
        self.weights, master = weights, weights.master
        self.names = [name for name, first in weights.starts.items() if first >= start]
        self.moments = {name: torch.zeros_like(master.data) for name in self.MOMENTS}
        self.count = torch.zeros((), device=master.device)
        own = nn.Parameter(master.data[start:])
        assert master.grad is not None
        own.grad = master.grad[start:]
        graphed = master.device.type == "cuda"
        self.inner = torch.optim.AdamW(
            [own],
            lr=torch.tensor(training.lr, device=master.device) if graphed else training.lr,
            betas=training.betas,
            weight_decay=training.weight_decay,
            fused=True,
            capturable=graphed,
        )
        # Set before the first step, so that torch changes these tensors in place.
        moments = {name: vector[start:] for name, vector in self.moments.items()}
        self.inner.state[own] = {"step": self.count, **moments}

    def step(self) -> None:
        self.inner.step()

    def set_rate(self, rate: float) -> None:
        group = self.inner.param_groups[0]
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate

    def state(self) -> dict[str, Tensor]:
        return {
            f"{kind}.{name}": part
            for kind, vector in self.moments.items()
            for name, part in self.weights.parts(vector).items()
            if name in self.names
        }

    def resume(self, step: int) -> None:
        self.count.fill_(step)

    def tensors(self) -> list[Tensor]:
        return [self.count, *self.moments.values()]


class Muon:
    """Muon for the matrices of blocks: orthogonal momentum (Jordan et al. 2024), scaled to the size
    of AdamW's updates (Liu et al. 2025). AdamW for all other parameters. Each member of a fleet has
    its own matrices.
    """

    def __init__(self, weights: FlatWeights, training: Training) -> None:
        self.weights, self.decay = weights, training.weight_decay
        self.rest = AdamW(weights, training, weights.matrices)
        self.rate = torch.tensor(training.lr, device=weights.master.device)
        self.momentum = torch.zeros_like(weights.master.data)
        self.names = [name for name in weights.starts if name not in self.rest.names]

    @torch.no_grad()
    def step(self) -> None:
        assert self.weights.master.grad is not None
        gradient = self.weights.master.grad
        self.momentum.lerp_(gradient, 1 - MUON_MOMENTUM)
        ahead = gradient.lerp(self.momentum, MUON_MOMENTUM)
        parts, updates = self.weights.named(), self.weights.parts(ahead)
        for name in self.names:
            update = orthogonal(updates[name])
            size = 0.2 * max(update.shape[-2:]) ** 0.5
            parts[name].mul_(1 - self.rate * self.decay).sub_(self.rate * size * update)
        self.rest.step()

    def set_rate(self, rate: float) -> None:
        self.rate.fill_(rate)
        self.rest.set_rate(rate)

    def state(self) -> dict[str, Tensor]:
        parts = self.weights.parts(self.momentum)
        own = {f"momentum.{name}": parts[name] for name in self.names}
        return {**own, **self.rest.state()}

    def resume(self, step: int) -> None:
        self.rest.resume(step)

    def tensors(self) -> list[Tensor]:
        return [self.momentum, *self.rest.tensors()]


def orthogonal(matrix: Float[Tensor, "*fleet row column"]) -> Float[Tensor, "*fleet row column"]:
    """The matrix with its singular values moved near one (0.7 to 1.2), by the Newton–Schulz
    iteration.
    """
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: Tensor = x.mT if tall else x
    return result


OPTIMISERS: dict[str, type[AdamW] | type[Muon]] = {"adamw": AdamW, "muon": Muon}
