"""What tests of the kernels share: every path that this processor can take, and numbers in bf16."""

import pytest
import torch
from torch import Tensor

from hopscope.models import compiled

on_every_path = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.skipif(path not in compiled.possible(), reason=reason))
        for path, reason in (
            ("amx", "no AMX, not permitted, or not compiled"),
            ("avx512", "no AVX-512 BF16, or not compiled"),
        )
    ],
)


def numbers(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape) * scale).bfloat16()
