"""What tests of the kernels share: every path that this processor can take, numbers in bf16, errors
in roundings, and a small transformer.
"""

import pytest
import torch
from torch import Tensor

from hopscope.configs import Model, Retrieval
from hopscope.models import Transformer, compiled
from hopscope.tasks import Batch, examples, sampler_of

ROUNDING = 2**-8  # of bf16, relative
PATHS = [path for path in compiled.possible() if path != "torch"]

on_every_path = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.skipif(path not in PATHS, reason=reason))
        for path, reason in (
            ("amx", "no AMX, not permitted, or not compiled"),
            ("avx512", "no AVX-512 BF16, or not compiled"),
        )
    ],
)


def numbers(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape) * scale).bfloat16()


def off(ours: Tensor | None, exact: Tensor | None) -> float:
    """The largest error, in roundings of the largest number (of 0.01 where that is smaller)."""
    assert ours is not None
    assert exact is not None
    assert ours.dtype == torch.bfloat16
    assert ours.shape == exact.shape
    largest = exact.detach().abs().max().clamp_min(0.01)
    return float((ours.detach().double() - exact.detach()).abs().max() / (ROUNDING * largest))


def model_and_batch(models: tuple[int, ...] = ()) -> tuple[Transformer, Batch]:
    task = Retrieval(hops=2, chains=2)
    config = Model(layers=2, heads=2, d_model=64, init="fan-in")
    model = Transformer(config, task.interface(), models=models)
    if not models:
        model = Transformer.seeded(config, task.interface(), 0)
    batch = examples(sampler_of(task), 0, torch.arange(8 * max(1, len(models))))
    return model.bfloat16(), batch.stacked(len(models)) if models else batch
