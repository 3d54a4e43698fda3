"""Private functions of torch that hopscope calls, each with a substitute if torch drops it."""

import torch
from jaxtyping import Float
from torch import Tensor

_COPY_ALL = getattr(torch, "_foreach_copy_", None)
_SOFTMAX_BACKWARD = getattr(torch.ops.aten, "_softmax_backward_data", None)


def processor_has(feature: str) -> bool:
    """True if torch reports that the processor has this feature; False if torch cannot tell."""
    query = getattr(torch.cpu, f"_is_{feature}_supported", None)
    return query is not None and bool(query())


def copy_all(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Copy each source into its target, in one call where torch can; otherwise one by one."""
    if _COPY_ALL is not None:
        _COPY_ALL(targets, sources)
        return
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def softmax_backward(
    weights: Float[Tensor, "*batch key"], gradient: Float[Tensor, "*batch key"]
) -> Float[Tensor, "*batch key"]:
    """The gradient of a softmax's input, from its output and the output's gradient."""
    if _SOFTMAX_BACKWARD is not None:
        scores: Tensor = _SOFTMAX_BACKWARD(gradient, weights, -1, weights.dtype)
        return scores
    along = (weights * gradient).sum(-1, keepdim=True)
    return weights * (gradient - along)
