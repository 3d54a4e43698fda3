"""What a whole module hands out and takes back is looked through: its attention, once for a model.

Whoever hands out something else, or goes on with what was there before, would get a circuit that is
not the model's, and nothing would look wrong.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from hopscope.errors import CircuitError
from hopscope.models import AttentionEdit

FUSED = "fused kernels (sdpa, flash) keep it to themselves; load the model with eager attention"
NEAR = 0.02
"""What rows of attention may miss by: in bf16 their sums are not quite one."""


def check_pattern(layer: int, pattern: Tensor, causal: bool) -> None:
    """Refuse what is no attention: rows of shares, of earlier positions alone if it is causal."""
    if not pattern.is_floating_point():
        raise CircuitError(
            f"layer {layer} handed out {pattern.dtype}, expected shares of attention"
        )
    low, most = float(pattern.min()), float(pattern.float().sum(-1).max())
    if low < -NEAR or most > 1 + NEAR:
        raise CircuitError(
            f"layer {layer} handed out rows with {low:.3g} in them, and sums up to {most:.3g}; "
            "expected attention after its softmax, without dropout (`module.eval()`): nothing "
            "below 0, and sums of 1"
        )
    later = float(pattern.triu(1).max()) if causal else 0.0
    if later > NEAR:
        raise CircuitError(
            f"layer {layer} attends to later positions (by up to {later:.3g}), and the model was "
            "said to be causal: say causal=False"
        )


def check_taken_back(forward: Callable[[AttentionEdit], Tensor], layers: int, causal: bool) -> None:
    """Refuse a module that in some layer goes on with its own attention, and not with what it got
    back.
    """
    plain = forward(_as_it_is)
    for layer in range(layers):
        changed = forward(partial(_other_in, layer, causal))
        # What heads carry may be nothing, as before a training: then outputs must have been
        # computed from the attention all the same.
        if torch.equal(changed, plain) and not _computed_from(forward, layer):
            raise CircuitError(
                f"layer {layer} does not go on with what `attention` returns: its outputs stay the "
                "same whatever that is. Mix the values by the returned pattern"
            )


def _as_it_is(_: int, pattern: Tensor) -> Tensor:
    return pattern


def _other_in(layer: int, causal: bool, number: int, pattern: Tensor) -> Tensor:
    return _other(pattern, causal) if number == layer else pattern


def _other(pattern: Tensor, causal: bool) -> Tensor:
    """Attention that is not this one: even, or of each position to itself."""
    length = pattern.shape[-1]
    even = torch.ones(length, length, dtype=pattern.dtype, device=pattern.device)
    even = even.tril() if causal else even
    even = (even / even.sum(-1, keepdim=True)).expand_as(pattern)
    if not torch.allclose(even, pattern, atol=NEAR):
        return even.clone()
    return torch.eye(length, dtype=pattern.dtype, device=pattern.device).expand_as(pattern).clone()


def _computed_from(forward: Callable[[AttentionEdit], Tensor], layer: int) -> bool:
    """Does a way lead from a layer's attention to the outputs?"""
    marked: list[Tensor] = []

    def edit(number: int, pattern: Tensor) -> Tensor:
        if number != layer:
            return pattern
        marked.append(pattern.detach().clone().requires_grad_())
        return marked[0] * 1

    with torch.enable_grad():
        out = forward(edit)
    ways, seen = [out.grad_fn], set()
    while ways:
        step = ways.pop()
        if step is None or step in seen:
            continue
        if getattr(step, "variable", None) is marked[0]:
            return True
        seen.add(step)
        ways += [before for before, _ in step.next_functions]
    return False
