"""Cross-entropy for answers that are classes, and the mean over hops."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from hopscope.errors import CircuitError


def cross_entropies(
    outputs: Float[Tensor, "*rows width"], targets: Int[Tensor, "*batch hop"], classes: int
) -> Float[Tensor, "*rows hop"]:
    """The cross-entropy of each hop; an output has the logits of all hops, concatenated."""
    hops = targets.shape[-1]
    if outputs.shape[-1] != hops * classes:
        raise CircuitError(
            f"the model gives {outputs.shape[-1]} numbers at each position; this task needs "
            f"{hops * classes}: {classes} classes for each of {hops} hops"
        )
    logits = outputs.float().unflatten(-1, (hops, classes))
    targets = targets.expand(logits.shape[:-1])
    losses = cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    return losses.view(targets.shape)


def total(losses: Float[Tensor, "*model hop"]) -> Float[Tensor, "*model"]:
    """A model's loss: the mean over the asked hops."""
    return torch.mean(losses, dim=-1)
