"""The kernels in C, against what they replace in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from hopscope.configs import Model
from hopscope.models import Transformer, kernels
from hopscope.tasks import sampler_of
from hopscope.configs import Retrieval

pytestmark = pytest.mark.skipif(
    kernels.library() is None, reason="no kernels: not compiled, or no AVX-512 BF16"
)
ROUNDING = 2**-8  # of bf16, relative


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape).bfloat16()


def assert_close(ours: Tensor, exact: Tensor, roundings: float) -> None:
    """Within some roundings of the largest number."""
    assert ours.dtype == torch.bfloat16
    assert ours.shape == exact.shape
    assert (ours.double() - exact).abs().max() <= roundings * ROUNDING * exact.abs().max() + 1e-6


def assert_same(fast, slow, inputs: list[Tensor], roundings: float = 3) -> None:
    """Value and gradients of `fast` in bf16 are those of `slow` in float64."""
    near = [x.clone().requires_grad_() for x in inputs]
    exact = [x.double().requires_grad_() for x in inputs]
    value, truth = fast(*near), slow(*exact)
    assert_close(value, truth, roundings)
    slope = numbers(*truth.shape)
    value.backward(slope)
    truth.backward(slope.double())
    for ours, theirs in zip(near, exact, strict=True):
        assert_close(ours.grad, theirs.grad, roundings)


def attention(query: Tensor, key: Tensor, value: Tensor, heads: int, causal: bool) -> Tensor:
    """Head by head, query by query."""
    width, before = query.shape[-1] // heads, key.shape[-2] - query.shape[-2]
    out = torch.zeros_like(query)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        for i in range(query.shape[-2]):
            seen = before + i + 1 if causal else key.shape[-2]
            scores = key[..., :seen, part] @ query[..., i, part, None] * width**-0.5
            mixed = (scores.softmax(-2) * value[..., :seen, part]).sum(-2)
            out = out.index_put(
                (..., torch.tensor([i])[:, None], torch.arange(part.start, part.stop)[None]), mixed[..., None, :]
            ) if False else torch.cat([out], 0)
    return out
