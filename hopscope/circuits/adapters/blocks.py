"""`BlockAdapter`: a model as three functions, for its embedding, its blocks and its unembedding."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopscope.circuits.adapters.proof import ProvedAdapter, embedded
from hopscope.circuits.engine import (
    Brought,
    Chosen,
    HeadKeys,
    Heads,
    Projected,
    Queries,
    Stream,
    Weights,
    check_one_device,
    of_chosen,
)
from hopscope.errors import CircuitError

Shared = Float[Tensor, "row group seq d_head"]
"""Keys or values of each head, or of each group of heads that share them."""
BlockAttend = Callable[..., Brought]
"""Takes the arguments of `scaled_dot_product_attention` (no dropout); query, key and value are
[row, head, position, d_head]. Returns the output of each head."""


class Projecting(Exception):
    """Raised to leave a block as soon as its queries, keys and values are known."""

    def __init__(self, heads: Projected) -> None:
        super().__init__()
        self.heads = heads


class BlockAdapter(ProvedAdapter):
    """An adapter for any model that can be split into blocks.

    `block(layer, x, attend)` computes a block of the model. It calls `attend` once, in place of
    `scaled_dot_product_attention`, and continues with the return value. Apart from `attend`, a
    block must compute each position on its own. `answers` is the number of last positions at which
    the model answers (None: all). If `model` is given, the outputs of the three functions are
    checked against its outputs.
    """

    def __init__(  # noqa: PLR0913
        self,
        embed: Callable[[Tensor], Stream],
        block: Callable[[int, Stream, BlockAttend], Stream],
        unembed: Callable[[Stream], Tensor],
        module: nn.Module,
        shape: tuple[int, int],
        *,
        causal: bool = True,
        answers: int | None = None,
        model: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if min(shape) < 1:
            raise CircuitError(f"shape (layers, heads) is {shape}; expected at least one of each")
        check_one_device(module)
        self._embed, self.block, self._unembed = embed, block, unembed
        self.module, self.model, self.answers = module, model, answers
        self.layers, self.heads = shape
        self.causal = causal

    def enter(self, inputs: Tensor) -> Stream:
        return embedded(self._embed, inputs)

    def expected(self, inputs: Tensor) -> Tensor | None:
        return self.model(inputs) if self.model else None

    def project(self, layer: int, x: Stream) -> Heads:
        """Run a block up to its attention; returns its queries, keys and values."""

        def stop(  # noqa: PLR0913
            query: Brought,
            key: Shared,
            value: Shared,
            attn_mask: Tensor | None = None,
            dropout_p: float = 0.0,
            is_causal: bool = False,
            *,
            scale: float | None = None,
            enable_gqa: bool = False,  # noqa: ARG001  (groups of heads share keys in any case)
            **unknown: object,
        ) -> Brought:
            if unknown or dropout_p:
                given = ", ".join(unknown) or f"dropout_p={dropout_p}"
                raise CircuitError(
                    f"block {layer} gave `attend` {given}; expected what "
                    "scaled_dot_product_attention takes, without dropout (`module.eval()`)"
                )
            if is_causal and (attn_mask is not None or not self.causal):
                what = ": pass causal=True, too" if attn_mask is None else " and a mask: give one"
                raise CircuitError(f"block {layer} gave `attend` is_causal=True{what}")
            if (
                attn_mask is not None
                and attn_mask.dim() > 3
                and len(attn_mask) not in {1, len(query)}
            ):
                raise CircuitError(
                    f"a block gave `attend` a mask for {len(attn_mask)} examples and queries of "
                    f"{len(query)}: examples are repeated and chosen, so a mask must not depend on "
                    "them; give examples of one length, without padding"
                )
            weigh = partial(attention_weights, mask=attn_mask, scale=scale, causal=self.causal)
            key, value = shared_by(query, key), shared_by(query, value)
            raise Projecting(Projected(x, query, key, value, weigh))

        try:
            self.block(layer, x, stop)
        except Projecting as done:
            self._check_heads(layer, done.heads)
            return done.heads
        except IndexError as error:
            if layer == 0:
                raise
            raise CircuitError(
                f"block {layer} failed ({error}): is {(self.layers, self.heads)} the model's shape "
                "(layers, heads)?"
            ) from error
        raise CircuitError(
            f"block {layer} did not call `attend`: expected one call in the place of "
            "scaled_dot_product_attention"
        )

    def _check_heads(self, layer: int, heads: Projected) -> None:
        """Raise CircuitError if the shape of the values does not fit the given (layers, heads)."""
        rows, seq = heads.stream.shape[:2]
        shape = tuple(heads.values.shape)
        if len(shape) != 4 or shape[:3] != (rows, self.heads, seq):
            raise CircuitError(
                f"block {layer} called `attend` with values {shape}; expected [row, head, position,"
                f" d_head] with ({rows}, {self.heads}, {seq}, …): is that the model's shape "
                "(layers, heads)?"
            )

    def finish(self, layer: int, x: Stream, brought: Brought) -> Stream:
        calls: list[None] = []

        def attend(*_: Tensor, **__: object) -> Brought:
            calls.append(None)
            return brought

        out = self.block(layer, x, attend)
        got = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
        if len(calls) != 1 or got != list(x.shape):
            raise CircuitError(
                f"block {layer} called `attend` {len(calls)} times and returned {got}; "
                f"expected one call, and the stream after the block, {list(x.shape)}"
            )
        return out

    def unembed(self, x: Stream) -> Tensor:
        return self._unembed(x)

    def answers_at(self) -> int | None:
        return self.answers


def shared_by(query: Brought, part: Shared) -> Brought:
    """Keys or values for every head, repeated if groups of heads share them."""
    groups = query.shape[1] // max(1, part.shape[1])
    return part.repeat_interleave(groups, 1) if groups > 1 else part


def attention_weights(
    query: Queries,
    key: HeadKeys,
    chosen: Chosen,
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
    causal: bool = True,
) -> Weights:
    """Attention of queries at the last positions to all keys, computed in float32. `mask` is added
    to the scores, or boolean (True where a position may be seen); without it, `causal` decides.
    """
    read, seq = query.shape[-2], key.shape[-2]
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    mask = None if mask is None else of_chosen(mask, chosen)
    hidden = hidden_of(mask, (read, seq), query.device, causal=causal)
    if torch.is_grad_enabled() or hidden.dim() > 2:
        scores = torch.add(hidden, query.float() @ key.float().mT, alpha=scale)
        return scores.softmax(-1).to(query.dtype)
    scores = hidden.new_empty(query.shape[1], len(query), read, seq)
    for head, its in enumerate(scores):  # in place: scaled and masked in one pass
        parts = (query[:, head].float(), key[:, head].float().mT)
        torch.baddbmm(hidden, *parts, alpha=scale, out=its)
    return scores.softmax(-1).to(query.dtype).transpose(0, 1)


def hidden_of(
    mask: Tensor | None, shape: tuple[int, int], device: torch.device, *, causal: bool
) -> Float[Tensor, "... read seq"]:
    """The tensor that is added to scores: minus infinity where a position must not be seen."""
    read, seq = shape
    if mask is None:
        hidden = torch.zeros(shape, device=device)
        return hidden.fill_(-torch.inf).triu(seq - read + 1) if causal else hidden
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, device=device).masked_fill(~mask, -torch.inf)
    mask = mask[..., -read:, :seq].float()
    while mask.dim() > 2 and len(mask) == 1:
        mask = mask[0]
    return mask
