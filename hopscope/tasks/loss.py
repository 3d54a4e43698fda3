"""Losses of each hop, and the level that guessing reaches."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from hopscope.configs import KHop, Task
from hopscope.tasks.batch import Batch


def hop_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model hop"]:
    """The partial loss of every asked hop: mean squared error, or cross-entropy for tokens."""
    if isinstance(task, KHop):
        return _cross_entropies(task, outputs.float(), batch.targets)
    known = len(task.graph().known)
    answers = outputs[..., known - 1 :: known, :].float()
    error = answers.unflatten(-1, batch.targets.shape[-2:]) - batch.targets
    losses: Tensor = error.square().mean(dim=(-4, -3, -1))
    return losses


def _cross_entropies(task: KHop, outputs: Tensor, targets: Tensor) -> Tensor:
    logits = outputs.unflatten(-1, (targets.shape[-1], task.alphabet + 1))
    losses = cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    return losses.view(targets.shape).mean(dim=(-3, -2))


def guessing_level(task: Task) -> float:
    """The loss of the best answer that ignores the facts' connections.

    Vectors: the mean of the N candidates leaves 1 - 1/N of the variance. One-hot symbols vary
    by (1 - 1/dim)/dim per number, unit vectors by 1/dim. Tokens: log of the alphabet.
    """
    if isinstance(task, KHop):
        return math.log(task.alphabet)
    unit = {"gaussian": 1.0, "sphere": 1 / task.dim, "one-hot": (1 - 1 / task.dim) / task.dim}
    spread = unit[task.symbols]
    if task.symbols == "one-hot":
        # Distinct symbols are drawn without replacement, so the mean of N says a little more.
        spread *= task.dim / (task.dim - 1)
    return spread * (1 - 1 / task.chains)


def total(losses: Float[Tensor, "*model hop"]) -> Float[Tensor, "*model"]:
    """A model's loss: the mean over the hops it is asked for."""
    return torch.mean(losses, dim=-1)
