"""k-hop induction in words: tokens are letters; whoever types them asks a question of their own."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from hopscope.configs import KHop
from hopscope.tasks.khop import KHopSampler
from hopscope.tasks.spelled import Asked, Spelled, letters, numbers, row, shuffled


class KHopSpeller:
    """Spells k-hop sequences: tokens are letters; the question is that of the last position."""

    def __init__(self, task: KHop) -> None:
        self.task = task
        self.sampler = KHopSampler(task, torch.device("cpu"))
        self.names = (*map(letters, range(task.alphabet)), "none")

    def drawn(self, key: Int[Tensor, "rows"], order: Int[Tensor, "rows"] | None = None) -> Spelled:
        """The example of a key; with another, the same letters in another order."""
        tokens = self.sampler.batch(key).inputs
        return self._of(tokens if order is None else tokens[:, shuffled(order, tokens.shape[1])])

    def tables(self) -> dict[str, Any]:
        """How examples are drawn and marked, as plain data."""
        task = self.task
        return {
            "way": "khop", "dim": 1, "answers": 1, "classes": task.alphabet + 1,
            "times": task.hops, "alphabet": task.alphabet,
        }  # fmt: skip

    def typed(self, words: Sequence[str], shown: Spelled) -> Spelled:  # noqa: ARG002  (all is new)
        """A sequence of these letters."""
        return self._of(torch.tensor([numbers(words, self.names[:-1], self.task.length)]))

    def _of(self, tokens: Int[Tensor, "rows seq"]) -> Spelled:
        batch = self.sampler.of_tokens(tokens)
        return Spelled(
            inputs=batch.inputs[0],
            roles=row(batch.roles),
            texts=tuple(self.names[token] for token in tokens[0].tolist()),
            asked=(Asked(tokens.shape[1] - 1, 0, tuple(batch.targets[0, -1].tolist())),),
            candidates=self.names,
        )
