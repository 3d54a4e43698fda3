"""Losses of each hop, and the level that guessing reaches."""

import math

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


def guessing_level(task: Task) -> float:
    """The loss of the best answer that ignores the facts' connections.

    Vectors: the mean of the N candidates leaves 1 - 1/N of the mean square of a symbol's numbers,
    which is 1 for gaussian symbols and 1/dim for those of unit length. (Distinct one-hot symbols
    are as orthogonal as independent ones are on average.) Tokens: log of the alphabet.
    """
    if isinstance(task, KHop):
        return math.log(task.alphabet)
    square = 1.0 if task.symbols == "gaussian" else 1 / task.dim
    return square * (1 - 1 / task.chains)


def total(losses: Float[Tensor, "*model hop"]) -> Float[Tensor, "*model"]:
    """A model's loss: the mean over the hops it is asked for."""
    return torch.mean(losses, dim=-1)
