"""Attention of language models, written out.

On processors transformers' own choice (torch's fused attention) is slower than two products and
a softmax, by a fifth of the whole model in bf16. Queries that share a head's keys are one product.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

WRITTEN = "hopscope"
"""The name under which transformers knows it."""


def register() -> None:
    """Make it known to transformers, with the masks that its own written-out attention gets."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(WRITTEN, attend)
    AttentionMaskInterface.register(WRITTEN, eager_mask)


def attend(
    _: torch.nn.Module,
    query: Float[Tensor, "batch head seq size"],
    key: Float[Tensor, "batch group all size"],
    value: Float[Tensor, "batch group all size"],
    attention_mask: Float[Tensor, "batch 1 seq all"],
    scaling: float,
    **__: Any,
) -> tuple[Float[Tensor, "batch seq head size"], None]:
    """What the heads write; the mask is added to the scores."""
    batch, heads, seq, size = query.shape
    groups, everything = key.shape[1], key.shape[2]
    together = (query * scaling).reshape(batch, groups, -1, size)
    scores = (together @ key.mT).view(batch, heads, seq, everything)
    weights = torch.softmax(scores.add_(attention_mask), dim=-1)
    written = weights.view(batch, groups, -1, everything) @ value
    return written.view(batch, heads, seq, size).transpose(1, 2), None
