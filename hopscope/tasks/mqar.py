"""Draws and marks multi-query associative recall: pairs, then queries at random gaps."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs import MQAR
from hopscope.facts import Role
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles
from hopscope.tasks.loss import cross_entropies
from hopscope.tasks.pairs import partners


class MQARSampler:
    """Draws each part of a sequence from a branch of the example's key.

    The branches are: which keys, which values, which slots, which pairs are asked for in which
    order, and what fills the rest.
    """

    ragged = False

    def __init__(self, task: MQAR, device: torch.device) -> None:
        self.task = task
        self.device = device
        self.number = {str(role): number for number, role in enumerate(task.roles())}
        self.example_bytes = 24 * max(task.keys, task.alphabet - task.keys) + 24 * task.length
        # As float32, so that the last bit of a processor's power function does not matter.
        weights = [slot ** (task.power - 1) for slot in range(1, task.slots + 1)]
        self.weight = torch.tensor(weights, dtype=torch.float32, device=device).double()

    def batch(self, key: Int[Tensor, "rows"], exchanged: Sequence[str] = ()) -> Batch:
        """One example per key; of these symbols, every two pairs have each other's."""
        context = 2 * self.task.pairs
        keys, values = self._pairs(key, exchanged)
        place = context + 2 * self._slots(counter.keys(key, 2))
        asked = self.askers(key)
        tokens = self._filler(counter.keys(key, 4), keys)
        tokens[:, 0:context:2] = keys
        tokens[:, 1:context:2] = values
        tokens.scatter_(1, place, keys.gather(1, asked))
        targets = values.gather(1, asked)[..., None]
        return Batch(tokens, targets, self._roles(place, asked))

    def symbols(self, key: Int[Tensor, "rows"]) -> Int[Tensor, "rows chain symbol"]:
        """The key and the value of every pair."""
        return torch.stack(self._pairs(key), dim=-1)

    def askers(self, key: Int[Tensor, "rows"]) -> Int[Tensor, "rows answer"]:
        """The pair that each query asks for."""
        return _different(counter.keys(key, 3), self.task.asked, self.task.pairs)

    def _pairs(
        self, key: Int[Tensor, "rows"], exchanged: Sequence[str] = ()
    ) -> tuple[Int[Tensor, "rows pair"], Int[Tensor, "rows pair"]]:
        """The key of every pair, and its value."""
        task = self.task
        keys = _different(counter.keys(key, 0), task.pairs, task.keys)
        values = _different(counter.keys(key, 1), task.pairs, task.alphabet - task.keys) + task.keys
        other = partners(task.pairs, self.device)
        first, second = task.symbol_names()
        return (
            keys[:, other] if first in exchanged else keys,
            values[:, other] if second in exchanged else values,
        )

    @staticmethod
    def answer_losses(
        task: MQAR, outputs: Float[Tensor, "*model batch read width"], batch: Batch
    ) -> Float[Tensor, "*model batch answer hop"]:
        """Cross-entropy at the queries, from left to right; no other output counts."""
        read = task.interface().read
        query = batch.roles.role[..., -read:] == task.roles().index(Role("query"))
        # A stable order has the queries' places first; a shape must not depend on what is drawn.
        place = query.byte().argsort(dim=-1, descending=True, stable=True)[..., : task.asked]
        outputs = outputs[..., -read:, :]
        shape = (*outputs.shape[:-2], task.asked, outputs.shape[-1])
        answers = outputs.gather(-2, place[..., None].expand(shape))
        return cross_entropies(answers, batch.targets, task.alphabet)

    def _slots(self, key: Int[Tensor, "rows"]) -> Int[Tensor, "rows query"]:
        """Different slots, drawn one after the other by their weights; then put in order.

        In a race of exponential times, slot s wins with a chance in proportion to its rate, and the
        second is drawn so from those left. Half the sum of two squared normals is exponential.
        """
        pairs = counter.normals(key, 2 * self.task.slots).double().square()
        time = pairs.unflatten(-1, (self.task.slots, 2)).sum(-1) / self.weight
        first = time.argsort(dim=-1, stable=True)[:, : self.task.asked]
        in_order: Tensor = first.sort(dim=-1).values
        return in_order

    def _filler(
        self, key: Int[Tensor, "rows"], keys: Int[Tensor, "rows key"]
    ) -> Int[Tensor, "rows seq"]:
        """A token for every position: any but this sequence's keys, or the blank."""
        task = self.task
        if task.filler == "blank":
            return torch.full((len(key), task.length), task.alphabet, device=self.device)
        number = counter.integers(key, task.length, task.alphabet - task.pairs)
        # Numbers count the tokens that are left: below the n-th taken one are taken - n of them.
        left = keys.sort(dim=-1).values - torch.arange(task.pairs, device=self.device)
        return number + torch.searchsorted(left, number, right=True)

    def _roles(self, place: Int[Tensor, "rows query"], asked: Int[Tensor, "rows query"]) -> Roles:
        task, context = self.task, 2 * self.task.pairs
        shape = (len(place), task.length)
        role = torch.full(shape, self.number["other"], dtype=torch.int16, device=self.device)
        role[:, 0:context:2] = self.number["key 0"]
        role[:, 1:context:2] = self.number["value 0"]
        role.scatter_(1, place, self.number["query"])
        chain = torch.full_like(role, task.pairs)
        pair = torch.arange(task.pairs, dtype=torch.int16, device=self.device)
        chain[:, :context] = pair.repeat_interleave(2)
        chain.scatter_(1, place, asked.to(torch.int16))
        return Roles(role, chain)


def _different(key: Int[Tensor, "rows"], count: int, below: int) -> Int[Tensor, "rows count"]:
    """`count` different whole numbers in [0, below) for every key, in random order."""
    return counter.bits(key, below).topk(count, largest=False).indices
