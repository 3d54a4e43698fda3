"""Associative recall in words: k3 is a key, v5 a value, · a blank. A key that comes again asks."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from hopscope.configs import MQAR
from hopscope.facts import Role
from hopscope.tasks.batch import Roles
from hopscope.tasks.mqar import MQARSampler
from hopscope.tasks.spelled import Asked, Spelled, numbers, shuffled


class MQARSpeller:
    """Spells pairs and queries: k3 is a key, v5 a value, · a blank."""

    def __init__(self, task: MQAR) -> None:
        self.task = task
        self.sampler = MQARSampler(task, torch.device("cpu"))
        self.names = (
            *(f"k{number}" for number in range(task.keys)),
            *(f"v{number}" for number in range(task.alphabet - task.keys)),
            *(["·"] if task.filler == "blank" else []),
        )

    def drawn(self, key: Int[Tensor, "rows"], order: Int[Tensor, "rows"] | None = None) -> Spelled:
        """The example of a key; with another, the same pairs in another order."""
        tokens = self.sampler.batch(key).inputs[0]
        if order is not None:
            context = 2 * self.task.pairs
            pairs = tokens[:context].view(-1, 2)[shuffled(order, self.task.pairs)]
            tokens = torch.cat([pairs.flatten(), tokens[context:]])
        return self._of(tokens)

    def tables(self) -> dict[str, Any]:
        """How examples are drawn and marked, as plain data."""
        task = self.task
        return {
            "way": "mqar", "dim": 1, "answers": task.asked, "classes": task.alphabet,
            "alphabet": task.alphabet, "keys": task.keys, "pairs": task.pairs,
            "asked_pairs": task.asked, "filler": task.filler,
            "weight": self.sampler.weight.tolist(),
        }  # fmt: skip

    def typed(self, words: Sequence[str], shown: Spelled) -> Spelled:  # noqa: ARG002  (all is new)
        """A sequence of these tokens; a key that comes again asks for its value."""
        return self._of(torch.tensor(numbers(words, self.names, self.task.length)))

    def _of(self, tokens: Int[Tensor, "seq"]) -> Spelled:
        found, pairs = tokens.tolist(), range(self.task.pairs)
        table = self.task.roles()
        key, value, query, other = (
            table.index(Role(kind)) for kind in ("key", "value", "query", "other")
        )
        of_key: dict[int, list[int]] = {}
        for pair in pairs:
            of_key.setdefault(found[2 * pair], []).append(pair)
        roles = [role for _ in pairs for role in (key, value)]
        chains = [pair for pair in pairs for _ in range(2)]
        asked = []
        for place in range(2 * len(pairs), len(found)):
            own = of_key.get(found[place], [])
            roles.append(query if own else other)
            chains.append(own[0] if own else self.task.pairs)
            if own:
                truth = found[2 * own[0] + 1] if len(own) == 1 else None
                is_value = truth is not None and truth < self.task.alphabet
                asked.append(Asked(place, own[0], (truth if is_value else None,)))
        return Spelled(
            inputs=tokens,
            roles=Roles(*(torch.tensor(each, dtype=torch.int16) for each in (roles, chains))),
            texts=tuple(self.names[token] for token in found),
            asked=tuple(asked),
            candidates=self.names[: self.task.alphabet],
        )
