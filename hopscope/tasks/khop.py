"""The sampler of k-hop induction over tokens, and its losses: every position asks for k hops."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs import KHop
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles
from hopscope.tasks.counter import Keys
from hopscope.tasks.loss import cross_entropies
from hopscope.tasks.rendering import QueryPosition, RenderedExample, letters, shuffled

NOWHERE = -1
"""The position that means that a hop found nothing."""


class KHopSampler:
    """Draws sequences of uniform tokens, with the k answers of every position."""

    def __init__(self, task: KHop, device: torch.device) -> None:
        self.task = task
        self.device = device
        self.asked = len(task.asked_hops())
        self.example_bytes = 24 * task.length * (task.hops + 1)
        self.names = tuple(map(letters, range(task.alphabet)))
        self.candidates = (*self.names, "none")

    def batch(self, key: Keys, swapped: Sequence[str] = ()) -> Batch:
        """One example per key; `swapped` must be empty, since there is only one chain."""
        assert not swapped
        return self._of(self.spelling(key))

    def spelling(self, key: Keys) -> Int[Tensor, "rows seq"]:
        """The token at every position."""
        return counter.integers(key, self.task.length, self.task.alphabet)

    def symbols(self, key: Keys) -> Int[Tensor, "rows chain symbol"]:
        """The last position's token, then its answers; the class after all tokens is "none"."""
        tokens = self.spelling(key)
        answers = self._answers(tokens, landings(tokens, self.task.hops)[:, -1:])
        return torch.cat((tokens[:, -1:, None], answers), dim=-1)

    def vectors(self, key: Keys) -> None:
        """None: tokens have no vectors."""

    def askers(self, key: Keys) -> Int[Tensor, "rows answer"]:
        """The chain of each answer: zeros, since every position asks in the only chain."""
        return torch.zeros(len(key), self.task.length, dtype=torch.int64, device=self.device)

    def rendered(self, key: Keys, order: Keys | None, typed: list[int] | None) -> RenderedExample:
        """The example in words, with the question of its last position."""
        tokens = self.spelling(key)
        if order is not None:
            tokens = tokens[:, shuffled(order, self.task.length)]
        if typed is not None:
            tokens = torch.tensor([typed])
        batch = self._of(tokens)
        return RenderedExample(
            inputs=tokens[0],
            roles=Roles(batch.roles.role[0], batch.roles.chain[0]),
            texts=tuple(self.names[token] for token in tokens[0].tolist()),
            questions=(
                QueryPosition(self.task.length - 1, 0, tuple(batch.targets[0, -1].tolist())),
            ),
            candidates=self.candidates,
        )

    def _of(self, tokens: Int[Tensor, "rows seq"]) -> Batch:
        """The batch of these sequences, with their answers and roles."""
        reached = landings(tokens, self.task.hops)
        targets = self._answers(tokens, reached)[..., -self.asked :]
        return Batch(tokens, targets, self._roles(reached[:, -1]))

    def _answers(
        self, tokens: Int[Tensor, "rows seq"], reached: Int[Tensor, "rows asker hop"]
    ) -> Int[Tensor, "rows asker hop"]:
        """The tokens where hops landed, or the class "none"."""
        flat = reached.flatten(1)
        found = tokens.gather(1, flat.clamp_min(0)).masked_fill(flat == NOWHERE, self.task.alphabet)
        return found.view_as(reached)

    def _roles(self, reached: Int[Tensor, "rows hop"]) -> Roles:
        query, other = 2 * self.task.hops, 2 * self.task.hops + 1
        # One additional column, where hops that lead nowhere write.
        role = torch.full((len(reached), self.task.length + 1), other, device=self.device)
        for hop in reversed(range(self.task.hops)):
            value = reached[:, hop, None]
            missing = value == NOWHERE
            role.scatter_(1, value.masked_fill(missing, self.task.length), 2 * hop + 1)
            role.scatter_(1, (value - 1).masked_fill(missing, self.task.length), 2 * hop)
        role = role[:, :-1].to(torch.int16)
        role[:, -1] = query
        return Roles(role, torch.zeros_like(role))

    @staticmethod
    def answer_losses(
        task: KHop, outputs: Float[Tensor, "*model batch read width"], batch: Batch
    ) -> Float[Tensor, "*model batch answer hop"]:
        """Cross-entropy at every position; the last class stands for "none"."""
        return cross_entropies(outputs, batch.targets, task.alphabet + 1)


def landings(tokens: Int[Tensor, "rows seq"], hops: int) -> Int[Tensor, "rows seq hop"]:
    """The positions to which 1, 2, … hops lead from every position; NOWHERE once a hop finds
    nothing.
    """
    # Sorted by token, then by position: the previous occurrence comes just before each position.
    place = tokens.argsort(dim=1, stable=True)
    grouped = tokens.gather(1, place)
    same = grouped[:, 1:] == grouped[:, :-1]
    earlier = torch.full_like(place, NOWHERE - 1)
    earlier[:, 1:] = place[:, :-1].masked_fill(~same, NOWHERE - 1)
    first = (torch.empty_like(place).scatter_(1, place, earlier) + 1).clamp_min(NOWHERE)
    reached = [first]
    for _ in range(hops - 1):
        here = reached[-1]
        onward = first.gather(1, here.clamp_min(0))
        reached.append(onward.masked_fill(here == NOWHERE, NOWHERE))
    return torch.stack(reached, dim=-1)
