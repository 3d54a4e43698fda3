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
    softcap: float | None = None,
    **more: Any,
) -> tuple[Float[Tensor, "batch seq head size"], None]:
    """What the heads write. A softcap bounds the scores, as in Gemma 2; then the mask is added.
    Sinks, `s_aux`, are scores that take their share and bring nothing, as in gpt-oss.
    """
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
        read = key[:, :, :seen], value[:, :, :seen]
        written.append(_attend(some, *read, mask, softcap, more.get("s_aux")))
    return torch.cat(written, dim=2).transpose(1, 2), None


def _attend(
    query: Float[Tensor, "batch head seq size"],
    key: Float[Tensor, "batch group all size"],
    value: Float[Tensor, "batch group all size"],
    mask: Float[Tensor, "batch 1 seq all"],
    softcap: float | None,
    sinks: Float[Tensor, "head"] | None,
) -> Float[Tensor, "batch head seq size"]:
    batch, heads, seq, size = query.shape
    groups, everything = key.shape[1], key.shape[2]
    scores = (query.reshape(batch, groups, -1, size) @ key.mT).view(batch, heads, seq, everything)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.add_(mask)
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(batch, heads, seq, 1)], dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., :everything]
    return (weights.reshape(batch, groups, -1, everything) @ value).view(query.shape)
