"""The sampler of multi-query associative recall (pairs, then queries), and its losses."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs import MQAR
from hopscope.facts import Role
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles, partners
from hopscope.tasks.counter import Keys
from hopscope.tasks.loss import cross_entropies
from hopscope.tasks.rendering import QueryPosition, RenderedExample, shuffled


class MQARSampler:
    """Draws sequences of multi-query associative recall.

    Each part of a sequence is drawn from its own branch of the example's key: the keys, the values,
    the query slots, the pairs that are asked for (in order), and the filler.
    """

    def __init__(self, task: MQAR, device: torch.device) -> None:
        self.task = task
        self.device = device
        self.number = {str(role): number for number, role in enumerate(task.roles())}
        self.example_bytes = 24 * max(task.keys, task.alphabet - task.keys) + 24 * task.length
        self.candidates = (
            *(f"k{number}" for number in range(task.keys)),
            *(f"v{number}" for number in range(task.alphabet - task.keys)),
        )
        self.names = (*self.candidates, *(["·"] if task.filler == "blank" else []))
        # Rounded to float32, since the last bit of a power differs between processors.
        weights = [slot ** (task.power - 1) for slot in range(1, task.query_slots + 1)]
        self.weight = torch.tensor(weights, dtype=torch.float32, device=device).double()

    def batch(self, key: Keys, swapped: Sequence[str] = ()) -> Batch:
        """One example per key; pairs (see `partners`) have swapped the symbols in `swapped`."""
        context = 2 * self.task.pairs
        keys, values = self._pairs(key, swapped)
        asked = self.askers(key)
        tokens = self._filler(counter.keys(key, 4), keys)
        tokens[:, 0:context:2] = keys
        tokens[:, 1:context:2] = values
        place = context + 2 * self._query_slots(counter.keys(key, 2))
        tokens.scatter_(1, place, keys.gather(1, asked))
        return Batch(tokens, values.gather(1, asked)[..., None], self._roles(tokens))

    def spelling(self, key: Keys) -> Int[Tensor, "rows seq"]:
        """The token at every position."""
        tokens: Tensor = self.batch(key).inputs
        return tokens

    def symbols(self, key: Keys) -> Int[Tensor, "rows chain symbol"]:
        """The key and the value of every pair."""
        return torch.stack(self._pairs(key), dim=-1)

    def vectors(self, key: Keys) -> None:
        """None: tokens have no vectors."""

    def askers(self, key: Keys) -> Int[Tensor, "rows answer"]:
        """The pair that each query asks for."""
        return _different(counter.keys(key, 3), self.task.asked, self.task.pairs)

    def rendered(self, key: Keys, order: Keys | None, typed: list[int] | None) -> RenderedExample:
        """The example in words: k3 is a key, v5 a value, · a blank. A repeated key is a query."""
        context, tokens = 2 * self.task.pairs, self.spelling(key)
        if order is not None:
            pairs = tokens[:, :context].view(-1, 2)[shuffled(order, self.task.pairs)]
            tokens = torch.cat([pairs.view(1, -1), tokens[:, context:]], dim=1)
        if typed is not None:
            tokens = torch.tensor([typed])
        roles, symbols = self._roles(tokens), tokens[0].tolist()
        role, chain = roles.role[0], roles.chain[0]
        asked = (role == self.number["query"]).nonzero().flatten().tolist()
        return RenderedExample(
            inputs=tokens[0],
            roles=Roles(role, chain),
            texts=tuple(self.names[symbol] for symbol in symbols),
            questions=tuple(
                QueryPosition(place, int(chain[place]), (self._truth(symbols, place),))
                for place in asked
            ),
            candidates=self.candidates,
        )

    def _truth(self, symbols: list[int], place: int) -> int | None:
        """The value of a key; None if several pairs have the key, or its value is not a token."""
        values = [
            symbols[2 * pair + 1]
            for pair in range(self.task.pairs)
            if symbols[2 * pair] == symbols[place]
        ]
        return values[0] if len(values) == 1 and values[0] < self.task.alphabet else None

    def _pairs(
        self, key: Keys, swapped: Sequence[str] = ()
    ) -> tuple[Int[Tensor, "rows pair"], Int[Tensor, "rows pair"]]:
        """The key of every pair, and its value."""
        task = self.task
        keys = _different(counter.keys(key, 0), task.pairs, task.keys)
        values = _different(counter.keys(key, 1), task.pairs, task.alphabet - task.keys) + task.keys
        other = partners(task.pairs, self.device)
        first, second = task.symbol_names()
        return (
            keys[:, other] if first in swapped else keys,
            values[:, other] if second in swapped else values,
        )

    @staticmethod
    def answer_losses(
        task: MQAR, outputs: Float[Tensor, "*model batch read width"], batch: Batch
    ) -> Float[Tensor, "*model batch answer hop"]:
        """Cross-entropy at the queries, from left to right; no other output counts."""
        read = task.interface().read
        query = batch.roles.role[..., -read:] == task.roles().index(Role("query"))
        # A stable sort puts the queries first; shapes must not depend on random numbers.
        place = query.byte().argsort(dim=-1, descending=True, stable=True)[..., : task.asked]
        outputs = outputs[..., -read:, :]
        shape = (*outputs.shape[:-2], task.asked, outputs.shape[-1])
        answers = outputs.gather(-2, place[..., None].expand(shape))
        return cross_entropies(answers, batch.targets, task.alphabet)

    def _query_slots(self, key: Keys) -> Int[Tensor, "rows query"]:
        """Different query slots, drawn by their weights without replacement, in ascending order.

        Each slot gets an exponential time with its weight as the rate. The probability that slot s
        is first is proportional to its weight, and the same holds for the second among the others.
        Half the sum of two squared normals is exponential.
        """
        pairs = counter.normals(key, 2 * self.task.query_slots).double().square()
        time = pairs.unflatten(-1, (self.task.query_slots, 2)).sum(-1) / self.weight
        first = time.argsort(dim=-1, stable=True)[:, : self.task.asked]
        in_order: Tensor = first.sort(dim=-1).values
        return in_order

    def _filler(self, key: Keys, keys: Int[Tensor, "rows key"]) -> Int[Tensor, "rows seq"]:
        """A token for every position: a random one that is no key of the sequence, or the blank."""
        task = self.task
        if task.filler == "blank":
            return torch.full((len(key), task.length), task.alphabet, device=self.device)
        number = counter.integers(key, task.length, task.alphabet - task.pairs)
        # Numbers count the free tokens; below the n-th key (from 0) there are key - n free tokens.
        left = keys.sort(dim=-1).values - torch.arange(task.pairs, device=self.device)
        return number + torch.searchsorted(left, number, right=True)

    def _roles(self, tokens: Int[Tensor, "rows seq"]) -> Roles:
        """The roles. After the pairs, a repeated key is a query for the first pair with the key."""
        pairs, context = self.task.pairs, 2 * self.task.pairs
        pair = torch.arange(pairs, dtype=torch.int16, device=self.device)
        same = tokens[:, context:, None] == tokens[:, None, 0:context:2]
        asked = torch.where(same, pair, pairs).amin(dim=-1)  # the number of pairs for none
        role = torch.empty(tokens.shape, dtype=torch.int16, device=self.device)
        role[:, 0:context:2] = self.number["key 0"]
        role[:, 1:context:2] = self.number["value 0"]
        query, other = self.number["query"], self.number["other"]
        role[:, context:] = torch.where(asked < pairs, query, other)
        told = pair.repeat_interleave(2).expand(len(tokens), -1)
        return Roles(role, torch.cat([told, asked], dim=1))


def _different(key: Keys, count: int, below: int) -> Int[Tensor, "rows count"]:
    """`count` different whole numbers in [0, below) for every key, in random order."""
    return counter.bits(key, below).topk(count, largest=False).indices
