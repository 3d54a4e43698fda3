"""Attention of language models, written out.

On processors transformers' own choice (torch's fused attention) is slower than two products and
a softmax, by a fifth of the whole model in bf16. Queries that share a head's keys are one product.
Rows of scores are filled up to whole vectors, as torch's softmax is slow at what is left over; and
some queries at a time are spared the keys behind all of them, which nothing may see.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

WRITTEN = "hopscope"
"""The name under which transformers knows it."""
LANES = 32
"""bf16 numbers in the widest vector of a processor."""
QUERIES = 128
"""Queries at a time: their scores fit into the cache."""


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
    seq, everything = query.shape[2], key.shape[2]
    rest = -everything % LANES
    key, value = (pad(each, (0, 0, 0, rest)) for each in (key, value))
    attention_mask = pad(attention_mask, (0, rest), value=torch.finfo(query.dtype).min)
    query = query * scaling
    written = []
    for begin in range(0, seq, QUERIES):
        end = min(begin + QUERIES, seq)
        seen = everything - (seq - end)
        seen += -seen % LANES
        some, mask = query[:, :, begin:end], attention_mask[:, :, begin:end, :seen]
        written.append(_attend(some, key[:, :, :seen], value[:, :, :seen], mask))
    return torch.cat(written, dim=2).transpose(1, 2), None


def _attend(
    query: Float[Tensor, "batch head seq size"],
    key: Float[Tensor, "batch group all size"],
    value: Float[Tensor, "batch group all size"],
    mask: Float[Tensor, "batch 1 seq all"],
) -> Float[Tensor, "batch head seq size"]:
    batch, heads, seq, size = query.shape
    groups, everything = key.shape[1], key.shape[2]
    scores = query.reshape(batch, groups, -1, size) @ key.mT
    weights = torch.softmax(scores.view(batch, heads, seq, everything).add_(mask), dim=-1)
    return (weights.view(batch, groups, -1, everything) @ value).view(query.shape)
