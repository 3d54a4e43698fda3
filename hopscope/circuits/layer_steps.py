"""What adapters share: attention written out, and the proof that a walk is the model's."""

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.handing import check_pattern
from hopscope.circuits.subject import Subject
from hopscope.errors import CircuitError

Heads = Float[Tensor, "batch head seq d_head"]
PARITY = 1e-3
"""How far, of the largest output, an adapter may be from its model."""
ROUNDED = 0.1
"""The same in halves (bf16 with its 8 bits, fp16), where every layer of either is rounded anew."""
NOISE = 0.05
"""How far it may be from its model in halves on the average (root mean square), of the spread of
the outputs. Rounding gives 0.02 in 24 layers of bf16; noise of 9 % of the largest output 0.2."""


def attention(
    query: Float[Tensor, "batch head read d_head"], key: Heads, scale: float, causal: bool = True
) -> Float[Tensor, "batch head read seq"]:
    """The attention of queries at the last positions to all keys, written out as a softmax."""
    read, seq = query.shape[-2], key.shape[-2]
    hidden = query.new_zeros((read, seq), dtype=torch.float32)
    if causal:
        hidden = hidden.fill_(-torch.inf).triu(seq - read + 1)
    if torch.is_grad_enabled():
        found = torch.add(hidden, query.float() @ key.float().mT, alpha=scale)
        return found.softmax(-1).to(query.dtype)
    scores = hidden.new_empty(query.shape[1], len(query), read, seq)
    for head, its in enumerate(scores):  # each where it lies: scaled and masked in one pass
        parts = (query[:, head].float(), key[:, head].float().mT)
        torch.baddbmm(hidden, *parts, alpha=scale, out=its)
    return scores.softmax(-1).to(query.dtype).transpose(0, 1)


def side_by_side(mixed: Heads) -> Float[Tensor, "batch seq width"]:
    """What all heads carry, joined along one axis: head after head."""
    return mixed.transpose(1, 2).flatten(2)


@torch.no_grad()
def prove(subject: Subject, x: Tensor, expected: Tensor, name: str) -> None:
    """Refuse an adapter whose walk does not compute the expected outputs of the model, from what
    enters the first layer.
    """
    halves = expected.dtype.itemsize < 4
    for number in range(subject.layers):
        pattern = subject.look(number, x, x.shape[1], range(subject.heads))
        check_pattern(number, pattern, subject.causal)
        x = subject.write(number, x, pattern @ subject.values(number, x))
    found, expected = subject.leave(x)[:, -expected.shape[1] :].float(), expected.float()
    error = found - expected
    worst = float(error.abs().max() / expected.abs().max())
    usual = float(error.square().mean().sqrt() / expected.std())
    if not (worst <= ROUNDED and usual <= NOISE if halves else worst <= PARITY):
        raise CircuitError(
            f"the adapter for {name} is off by {worst:.1e} of the largest output ({usual:.1e} of "
            "their spread on the average): this configuration computes something it does not "
            "know; use Whole"
        )
