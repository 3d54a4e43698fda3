"""What tests of the kernels share: every backend that this processor can take, errors in roundings
of bf16, and a small transformer.
"""

import pytest
import torch
from torch import Tensor

from hopscope.configs import Model, Retrieval
from hopscope.models import Transformer, native
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
    assert ours is not None
    assert exact is not None
    assert ours.dtype == torch.bfloat16
    assert ours.shape == exact.shape
    largest = exact.detach().abs().max().clamp_min(0.01)
    return float((ours.detach().double() - exact.detach()).abs().max() / (ROUNDING * largest))


def model_and_batch(backend: str, models: tuple[int, ...] = ()) -> tuple[Transformer, Batch]:
    task = Retrieval(hops=2, chains=2)
    config = Model(layers=2, heads=2, d_model=64, init="fan-in")
    with native.using(backend):
        model = Transformer(config, task.interface(), models=models or (0,))
        model = (model if models else model.member(0)).bfloat16()
    batch = examples(sampler_of(task), 0, torch.arange(8 * max(1, len(models))))
    return model, batch.stacked(len(models)) if models else batch
