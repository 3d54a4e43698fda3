"""The written-out attention is torch's own, for all lengths, beginnings and shared keys."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from hopscope.llm.attention import LANES, QUERIES, attend


@pytest.mark.parametrize("before", [0, 1, 45])
@pytest.mark.parametrize("seq", [1, LANES, QUERIES - 1, QUERIES + 1, 2 * QUERIES + 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_is_that_of_torch(before: int, seq: int, dtype: torch.dtype) -> None:
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
