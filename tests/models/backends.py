"""Shared by tests of the kernels: the backends that are possible here, blocks in bf16 and float64,
errors in roundings of bf16, and a small transformer.
"""

import pytest
import torch
from torch import Tensor

from hopscope.configs import Model, Retrieval
from hopscope.models import Transformer, native
from hopscope.models.transformer import Block
from hopscope.tasks import Batch, examples, sampler_of

ROUNDING = 2**-8  # of bf16, relative
BACKENDS = [backend for backend in native.possible() if backend != "torch"]

on_every_backend = pytest.mark.parametrize(
    "backend",
    [
        pytest.param(backend, marks=pytest.mark.skipif(backend not in BACKENDS, reason=reason))
        for backend, reason in (
            ("amx", "no AMX, not permitted, or not compiled"),
            ("avx512", "no AVX-512 BF16, or not compiled"),
        )
    ],
)


def off(ours: Tensor | None, exact: Tensor | None) -> float:
    """The largest error, in roundings of the largest number (of 0.01 where that is smaller)."""
    assert ours.dtype == torch.bfloat16
    assert ours.shape == exact.shape
    largest = exact.detach().abs().max().clamp_min(0.01)
    return float((ours.detach().double() - exact.detach()).abs().max() / (ROUNDING * largest))


def model_and_batch(backend: str) -> tuple[Transformer, Batch]:
    task = Retrieval(hops=2, chains=2)
    config = Model(layers=2, heads=2, d_model=64, init="fan-in")
    with native.using(backend):
        model = Transformer.seeded(config, task.interface(), 0).bfloat16()
    return model, examples(sampler_of(task), 0, torch.arange(8))


def numbers(*shape: int, scale: float = 1.0) -> Tensor:
    """Random numbers that bf16 can hold."""
    return (torch.randn(*shape) * scale).bfloat16()


def pair(
    backend: str, config: Model, fleet: tuple[int, ...] = (), gain: float = 1.0
) -> tuple[Block, Block]:
    """A random block in bf16 on this backend, and the same in float64.

    Queries and keys are larger by this gain.
    """
    with native.using(backend):
        fast = Block(fleet, config).bfloat16()
    for name, parameter in fast.named_parameters():
        by = gain if "query" in name or "key" in name else 1.0
        parameter.data = numbers(*parameter.shape, scale=by * parameter.shape[-1] ** -0.5)
    exact = Block(fleet, config)
    exact.load_state_dict(fast.state_dict())
    return fast, exact.double()


def results(block: Block, kind: str, x: Tensor, read: int, slope: Tensor) -> list[Tensor]:
    """Value, gradient of the input, gradients of all parameters."""
    block.zero_grad()
    x = x.detach().to(block.attention.out.weight.dtype).requires_grad_()
    attention = kind == "attention"
    value = block.attention_sublayer(x, read) if attention else block.mlp_sublayer(x)
    value.backward(slope[..., -value.shape[-2] :, :].to(value.dtype))
    return [value, x.grad, *(p.grad for p in block.parameters() if p.grad is not None)]  # type: ignore[list-item]


def hold(fast: Block, exact: Block, kind: str, x: Tensor, read: int) -> None:
    """Value and gradients of `fast` in bf16 are those of `exact` in float64."""
    assert fast.longest if kind == "attention" else fast.mlp_in_kernels
    slope = numbers(*x.shape)
    ours, true = (results(block, kind, x, read, slope) for block in (fast, exact))
    for near, theirs in zip(ours, true, strict=True):
        assert off(near, theirs) < 8
