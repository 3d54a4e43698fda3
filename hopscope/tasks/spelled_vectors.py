"""Examples of vector tasks in words: a symbol is called by the letter of its chain and its name."""

import re

import torch
from torch import Tensor

from hopscope.configs import VectorTask
from hopscope.tasks.spelled import Asked, Spelled, letters, row
from hopscope.tasks.vector import VectorSampler

NUMBERED = re.compile(r"x(\d+)", re.ASCII)


class VectorSpeller:
    """Spells the examples of one vector task."""

    def __init__(self, task: VectorTask) -> None:
        self.task = task
        self.sampler = VectorSampler(task, torch.device("cpu"))
        self.each = task.size().symbols

    def drawn(self, key: Tensor) -> Spelled:
        """The example of a key."""
        batch = self.sampler.batch(key)
        spelling = self.sampler.spelling(key)[0].tolist()
        askers = self.sampler.askers(key)[0].tolist()
        names = self.names()
        return Spelled(
            inputs=batch.inputs[0],
            roles=row(batch.roles),
            texts=tuple(names[number] for number in spelling),
            asked=tuple(self._asked(n, chain) for n, chain in enumerate(askers)),
            candidates=names,
            vectors=self.sampler.vectors(key)[0],
        )

    def names(self) -> tuple[str, ...]:
        """What every symbol is called, by its number."""
        own = [f"{_short(name)}" for name in self.task.graph().symbols]
        own += [f".decoy{number}" for number in range(self.each - len(own))]
        return tuple(f"{letters(chain)}{name}" for chain in range(self.task.chains) for name in own)

    def _asked(self, number: int, chain: int) -> Asked:
        known = self.sampler.known
        position = self.sampler.length - self.sampler.read + number * known + known - 1
        return Asked(position, chain, tuple(self.sampler.answers[chain].tolist()))


def _short(name: str) -> str:
    """x2 of chain b is b2; a symbol of another name keeps it behind a dot."""
    match = NUMBERED.fullmatch(name)
    return match[1] if match else f".{name}"
