"""What a whole module hands out and takes back is looked through: its attention, once for a model.

Whoever hands out something else, or goes on with what was there before, would get a circuit that is
not the model's, and nothing would look wrong.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from hopscope.errors import CircuitError
from hopscope.models import AttentionEdit

FUSED = "fused kernels (sdpa, flash) keep it to themselves; load the model with eager attention"
SHAPE = "is that the module's shape (layers, heads)?"
NEAR = 0.02
"""What rows of attention may miss by: in bf16 their sums are not quite one."""


def check_asked(asked: Sequence[int], layers: int) -> None:
    """Refuse layers that did not hand their attention out, or that did more than once."""
    if sorted(set(asked)) != list(range(layers)):
        why = f"; {SHAPE}" if asked else f": {FUSED}"
        raise CircuitError(
            f"attention was handed out by layers {sorted(set(asked))}, expected 0 … "
            f"{layers - 1}{why}"
        )
    twice = next((layer for layer in range(layers) if asked.count(layer) > 1), None)
    if twice is not None:
        raise CircuitError(
            f"layer {twice} handed out its attention {asked.count(twice)} times, expected once: "
            "give every layer a number of its own, also where they share weights"
        )


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


Forward = Callable[[Tensor, AttentionEdit], Tensor]
"""A module's outputs for these inputs, under an edit of its attention."""


def check_same_twice(forward: Forward, inputs: Tensor) -> None:
    """Refuse a module that answers otherwise when it is asked again."""
    first, again = (forward(inputs, _as_it_is) for _ in range(2))
    if not torch.allclose(first, again, rtol=NEAR, atol=NEAR * float(first.abs().mean())):
        raise CircuitError(
            "two calls with the same inputs give different outputs, by up to "
            f"{float((first - again).abs().max()):.3g}: the module draws at random, as dropout "
            "does in training; call `module.eval()` first"
        )


def check_taken_back(
    forward: Forward, inputs: Tensor, shape: tuple[int, int], causal: bool
) -> None:
    """Refuse a module that in some layer, head or row goes on with its own attention, and not with
    what it got back.
    """
    plain = forward(inputs, _as_it_is)
    layers, heads = shape
    for layer in range(layers):
        _check_layer(partial(forward, inputs), layer, causal, plain)
        _check_heads(forward, inputs[:1], layer, heads)


def _check_layer(
    forward: Callable[[AttentionEdit], Tensor], layer: int, causal: bool, plain: Tensor
) -> None:
    """Do outputs depend on what this layer gets back?"""
    changed = forward(partial(_other_in, layer, causal))
    # What heads carry may be nothing, as before a training: then outputs must have been computed
    # from the attention all the same.
    if torch.equal(changed, plain) and not _computed_from(forward, layer):
        raise CircuitError(
            f"layer {layer} does not go on with what `attention` returns: its outputs stay the "
            "same whatever that is. Mix the values by the returned pattern"
        )


def _check_heads(forward: Forward, one: Tensor, layer: int, heads: int) -> None:
    """Are the attention of each head, and an early and the last row of all heads, taken back?

    What is no number makes everything that is computed from it no number either, whatever the
    weights are. Each copy of the one example has another part of its attention made so.
    (The very first row has no choice where it looks, so whoever leaves it out does no harm.)
    """
    early = min(1, one.shape[1] - 1)

    def edit(number: int, pattern: Tensor) -> Tensor:
        if number != layer:
            return pattern
        pattern = pattern.clone()
        pattern[range(heads), range(heads)] = torch.nan
        pattern[heads, :, -1] = torch.nan
        pattern[heads + 1, :, early] = torch.nan
        return pattern

    parts = [*(f"head {head}" for head in range(heads)), "its last row", f"its row {early}"]
    out = forward(one.repeat(heads + 2, *[1] * (one.dim() - 1)), edit)
    seen = out.flatten(1).isnan().any(1)
    if out.shape[1] != one.shape[1]:  # what is in one row need not come to the outputs of another
        seen[heads:] = True
    lost = [part for part, comes in zip(parts, seen.tolist(), strict=True) if not comes]
    if lost:
        raise CircuitError(
            f"layer {layer} does not go on with all that `attention` returns: {', '.join(lost)} "
            "can be anything, and the outputs stay the same. Mix the values of every head by the "
            "returned pattern, in every row"
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
