"""Arranged weights are the same weights, and multiply to the same bits."""

import pytest
import torch
from torch import nn

from hopscope.circuits.subject import weights_digest
from hopscope.llm.packed import Packed, pack

SUPPORTED = torch.ops.mkldnn._is_mkldnn_bf16_supported()


def model(dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(32, 64), nn.Sequential(nn.SiLU(), nn.Linear(64, 32, bias=False)))
    whole = nn.Module()
    whole.model, whole.lm_head = body, nn.Linear(32, 8)
    return whole.to(dtype)


@pytest.mark.skipif(not SUPPORTED, reason="this processor multiplies no bf16")
def test_the_same_bits() -> None:
    plain, packed = model(torch.bfloat16), model(torch.bfloat16)
    pack(packed)
    assert [type(its) for its in packed.model.modules()].count(Packed) == 2
    assert type(packed.lm_head) is nn.Linear
    assert weights_digest(packed) == weights_digest(plain)
    with torch.no_grad():
        for rows in (1, 7, 300):
            x = torch.randn(2, rows, 32).bfloat16()
            assert torch.equal(packed.model(x), plain.model(x))


def test_float32_is_left_alone() -> None:
    packed = model(torch.float32)
    pack(packed)
    assert not any(isinstance(its, Packed) for its in packed.modules())
