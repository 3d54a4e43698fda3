"""The written-out attention is torch's own, and arranged weights multiply to the same bits."""

from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoModelForCausalLM, Gemma2Config, GptOssConfig

from hopscope.circuits.engine import weights_digest
from hopscope.llm.attention import LANES, QUERIES, WRITTEN, attend, register
from hopscope.llm.packed import Packed, pack

LENGTHS = (1, LANES, QUERIES - 1, QUERIES + 1, 2 * QUERIES + 7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_is_that_of_torch(dtype: torch.dtype) -> None:
    for before, seq in product((0, 1, 45), LENGTHS):
        is_that_of_torch(before, seq, dtype)


def is_that_of_torch(before: int, seq: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(seq + before)
    query = torch.randn(2, 6, seq, 8, generator=generator).to(dtype)
    key, value = (
        torch.randn(2, 2, before + seq, 8, generator=generator).to(dtype) for _ in range(2)
    )
    sees = torch.ones(seq, before + seq, dtype=torch.bool).tril(before).repeat(2, 1, 1, 1)
    sees[1, :, 1:, 0] = False  # something that only its own place may see
    mask = torch.zeros(sees.shape, dtype=dtype).masked_fill(~sees, torch.finfo(dtype).min)
    whole = (query, key.repeat_interleave(3, 1), value.repeat_interleave(3, 1))
    expected = scaled_dot_product_attention(
        *(each.float() for each in whole), mask.float(), scale=0.3
    )
    found, _ = attend(torch.nn.Identity(), query, key, value, mask, 0.3)
    close = 1e-5 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(found.float(), expected.transpose(1, 2), atol=close, rtol=close)


SIZES: dict[str, Any] = {
    "vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 64,
    "pad_token_id": 0, "bos_token_id": None, "eos_token_id": 0,
}  # fmt: skip
CAPPED = Gemma2Config(**SIZES, attn_logit_softcapping=0.5, query_pre_attn_scalar=1)
SUNK = GptOssConfig(**SIZES, num_local_experts=2, num_experts_per_tok=1)


@pytest.mark.parametrize("config", [CAPPED, SUNK], ids=["softcap", "sinks"])
@torch.no_grad()
def test_what_families_add_to_attention_is_added(config: Any) -> None:
    register()
    torch.manual_seed(0)
    eager, ours = (
        AutoModelForCausalLM.from_config(deepcopy(config), attn_implementation=name).eval()
        for name in ("eager", WRITTEN)
    )
    for weights in eager.parameters():
        weights.normal_(0, 0.6)
    ours.load_state_dict(eager.state_dict())
    tokens = torch.randint(1, 32, (2, 40))
    torch.testing.assert_close(ours(tokens).logits, eager(tokens).logits, atol=1e-4, rtol=1e-4)


SUPPORTED = torch.ops.mkldnn._is_mkldnn_bf16_supported()


def linears(dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(32, 64), nn.Sequential(nn.SiLU(), nn.Linear(64, 32, bias=False)))
    whole = nn.Module()
    whole.model, whole.lm_head = body, nn.Linear(32, 8)
    return whole.to(dtype)


@pytest.mark.skipif(not SUPPORTED, reason="this processor multiplies no bf16")
def test_the_same_bits() -> None:
    plain, packed = linears(torch.bfloat16), linears(torch.bfloat16)
    pack(packed)
    assert [type(its) for its in packed.model.modules()].count(Packed) == 2
    assert type(packed.lm_head) is nn.Linear
    assert weights_digest(packed) == weights_digest(plain)
    with torch.no_grad():
        for rows in (1, 7, 300):
            x = torch.randn(2, rows, 32).bfloat16()
            assert torch.equal(packed.model(x), plain.model(x))


def test_float32_is_left_alone() -> None:
    packed = linears(torch.float32)
    pack(packed)
    assert not any(isinstance(its, Packed) for its in packed.modules())
