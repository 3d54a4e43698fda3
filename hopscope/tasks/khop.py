"""Draws and marks k-hop induction over tokens: every position asks for k hops."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs import KHop
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles
from hopscope.tasks.loss import cross_entropies

NOWHERE = -1
"""The place that stands for no position: a hop found nothing."""


class KHopSampler:
    """Draws sequences of uniform tokens, with the k answers of every position."""

    ragged = False

    def __init__(self, task: KHop, device: torch.device) -> None:
        self.task = task
        self.device = device
        self.asked = len(task.asked_hops())
        self.example_bytes = 24 * task.length * (task.hops + 1)

    def batch(self, key: Int[Tensor, "rows"], exchanged: Sequence[str] = ()) -> Batch:
        """One example per key; there are no chains that could exchange symbols."""
        assert not exchanged
        return self.of_tokens(counter.integers(key, self.task.length, self.task.alphabet))

    def of_tokens(self, tokens: Int[Tensor, "rows seq"]) -> Batch:
        """These sequences, with their answers."""
        reached = landings(tokens, self.task.hops)
        answers = _answers(tokens, reached, none=self.task.alphabet)
        return Batch(tokens, answers[..., -self.asked :], self._roles(reached[:, -1]))

    def symbols(self, key: Int[Tensor, "rows"]) -> Int[Tensor, "rows chain symbol"]:
        """The last position's token, then its answers; the class after all tokens is "none"."""
        tokens = counter.integers(key, self.task.length, self.task.alphabet)
        reached = landings(tokens, self.task.hops)[:, -1:]
        answers = _answers(tokens, reached, none=self.task.alphabet)
        return torch.cat((tokens[:, -1:, None], answers), dim=-1)

    def askers(self, key: Int[Tensor, "rows"]) -> Int[Tensor, "rows answer"]:
        """Every position asks, in the one chain that there is."""
        return torch.zeros(len(key), self.task.length, dtype=torch.int64, device=self.device)

    def _roles(self, reached: Int[Tensor, "rows hop"]) -> Roles:
        rows = len(reached)
        query, other = 2 * self.task.hops, 2 * self.task.hops + 1
        # One column more than positions: hops that lead nowhere write there.
        role = torch.full((rows, self.task.length + 1), other, device=self.device)
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
    """Where 1, 2, … hops from every position land, NOWHERE once a hop finds nothing."""
    # Grouped by token, in order: the last earlier place with a token stands before this one's.
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


def _answers(tokens: Tensor, reached: Tensor, none: int) -> Int[Tensor, "rows seq hop"]:
    flat = reached.flatten(1)
    found = tokens.gather(1, flat.clamp_min(0)).masked_fill(flat == NOWHERE, none)
    return found.view_as(reached)
