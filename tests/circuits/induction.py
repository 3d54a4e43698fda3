"""A transformer of two layers that repeats tokens, written by hand: by head 0.0 every position
looks at the one before, by head 1.0 at the position after an earlier copy of its token.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad

from hopscope.circuits import BlockAdapter, repeated_tokens

VOCABULARY, LENGTH = 64, 12
TASK = repeated_tokens(VOCABULARY, length=LENGTH)
PLACES = 2 * LENGTH + 8


class Induction(nn.Module):
    """The stream holds a token, the token before, the place, and the answer."""

    def __init__(self, sharp: float) -> None:
        super().__init__()
        self.sharp = nn.Parameter(torch.tensor(float(sharp)))

    def embed(self, tokens: Tensor) -> Tensor:
        token = one_hot(tokens, VOCABULARY).float()
        place = torch.eye(PLACES)[: tokens.shape[1]].expand(len(tokens), -1, -1)
        nothing = torch.zeros_like(token)
        return torch.cat([token, nothing, place, nothing], -1)

    def block(self, number: int, x: Tensor, attend) -> Tensor:  # type: ignore[no-untyped-def]
        token, before, place, answer = self.split(x)
        wide = pad(place, (0, VOCABULARY - PLACES))
        query, key = (wide.roll(-1, -1), wide) if number == 0 else (token, before)
        brought = attend(self.sharp * query[:, None], key[:, None], token[:, None], scale=1.0)[:, 0]
        parts = (token, brought, place, answer) if number == 0 else (token, before, place, brought)
        return torch.cat(parts, -1)

    def answers(self, x: Tensor) -> Tensor:
        return 10 * self.split(x)[3]

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.split([VOCABULARY, VOCABULARY, PLACES, VOCABULARY], -1)


def adapter(sharp: float) -> BlockAdapter:
    """The model with attention that is so sharp; 0: even, as before its training."""
    module = Induction(sharp)
    return BlockAdapter(module.embed, module.block, module.answers, module, shape=(2, 1))
