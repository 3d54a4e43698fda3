"""Losses of each hop."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from hopscope.configs import KHop, Task
from hopscope.tasks.batch import Batch


def answer_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model batch answer hop"]:
    """The loss of every single answer: squared error, or cross-entropy for tokens.

    The outputs may have more axes in front than the batch: several answers to the same questions.
    """
    if isinstance(task, KHop):
        return _cross_entropies(task, outputs.float(), batch.targets)
    known = len(task.graph().known)
    answers = outputs[..., known - 1 :: known, :].float()
    error = answers.unflatten(-1, batch.targets.shape[-2:]) - batch.targets
    losses: Tensor = error.square().mean(-1)
    return losses


def hop_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model hop"]:
    """The partial loss of every asked hop: the mean over all answers."""
    losses: Tensor = answer_losses(task, outputs, batch).mean(dim=(-3, -2))
    return losses


def _cross_entropies(task: KHop, outputs: Tensor, targets: Tensor) -> Tensor:
    logits = outputs.unflatten(-1, (targets.shape[-1], task.alphabet + 1))
    targets = targets.expand(logits.shape[:-1])
    losses = cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    return losses.view(targets.shape)


def total(losses: Float[Tensor, "*model hop"]) -> Float[Tensor, "*model"]:
    """A model's loss: the mean over the hops it is asked for."""
    return torch.mean(losses, dim=-1)
