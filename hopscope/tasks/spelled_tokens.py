"""Examples of token tasks in words: k-hop induction and multi-query associative recall."""

import torch
from torch import Tensor

from hopscope.configs import MQAR, KHop
from hopscope.facts import Role
from hopscope.tasks.khop import KHopSampler
from hopscope.tasks.mqar import MQARSampler
from hopscope.tasks.spelled import Asked, Spelled, letters, row, rows


class KHopSpeller:
    """Spells k-hop sequences: tokens are letters; the question is that of the last position."""

    def __init__(self, task: KHop) -> None:
        self.task = task
        self.sampler = KHopSampler(task, torch.device("cpu"))

    def drawn(self, key: Tensor) -> Spelled:
        """The example of a key."""
        batch = self.sampler.batch(key)
        tokens, last = batch.inputs[0], len(batch.inputs[0]) - 1
        names = (*map(letters, range(self.task.alphabet)), "none")
        return Spelled(
            inputs=tokens,
            roles=row(batch.roles),
            texts=tuple(names[token] for token in tokens.tolist()),
            asked=(Asked(last, 0, tuple(batch.targets[0, -1].tolist())),),
            candidates=names,
        )


class MQARSpeller:
    """Spells pairs and queries: k3 is a key, v5 a value, · a blank."""

    def __init__(self, task: MQAR) -> None:
        self.task = task
        self.sampler = MQARSampler(task, torch.device("cpu"))

    def drawn(self, key: Tensor) -> Spelled:
        """The example of a key."""
        batch = self.sampler.batch(key)
        names = (
            *(f"k{number}" for number in range(self.task.keys)),
            *(f"v{number}" for number in range(self.task.alphabet - self.task.keys)),
            "·",
        )
        query = self.task.roles().index(Role("query"))
        roles = row(batch.roles)
        places = [
            (position, chain)
            for position, (role, chain) in enumerate(rows(roles.role, roles.chain))
            if role == query
        ]
        asked = zip(places, batch.targets[0].tolist(), strict=True)
        return Spelled(
            inputs=batch.inputs[0],
            roles=roles,
            texts=tuple(names[token] for token in batch.inputs[0].tolist()),
            asked=tuple(Asked(*place, tuple(truth)) for place, truth in asked),
            candidates=names[: self.task.alphabet],
        )
