"""Minimal pairs: examples, their counterfactuals (one symbol exchanged between two chains), and how
far answers go from one chain's symbols to the other's.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.circuits.exam import Exam, Questions, exam_of
from hopscope.configs import FactTask, Task
from hopscope.errors import CircuitError
from hopscope.tasks import Batch, askers, dataset, partners, question_losses
from hopscope.tasks import symbols as drawn_symbols

Losses = Callable[[Tensor], Float[Tensor, "*variant batch hop"]]


@dataclass(frozen=True)
class Pairs:
    """Examples, and for each symbol their counterfactuals."""

    exam: Exam
    other: Losses
    """The loss of each answer if the other chain of its pair were asked for."""
    third: Losses
    """The same of chains that have no part in it: what losses are when an answer is merely lost.
    Both chains of a pair have the same third ones."""
    counterfactuals: dict[str, Tensor]
    """For each symbol, the inputs of the same examples with that symbol exchanged."""
    hops: tuple[int, ...]
    """The number of each answer's hop."""

    def marks(self, outputs: Tensor) -> Float[Tensor, "mark variant batch hop"]:
        """How much nearer the answers are to the other chain's symbols than to those of third
        ones; and the same of the own chain's.
        """
        third = self.third(outputs)
        return torch.stack((third - self.other(outputs), third - self.exam.marks(outputs))).double()


def pairs_of(questions: Questions, examples: int, seed: int = 0) -> Pairs:
    """Minimal pairs of a task."""
    if not isinstance(examples, int | np.integer) or examples < 2:
        raise CircuitError(f"examples is {examples!r}; minimal pairs are at least 2")
    if not isinstance(questions, FactTask):
        raise CircuitError(
            "these questions draw no minimal pairs: give a task, or Pairs of your own"
        )
    task: Task = questions
    if why := task.swap_obstacle():
        raise CircuitError(f"examples of {task.kind} cannot be paired: {why}")
    counterfactuals = {
        name: dataset(task, seed, examples, "validation", swapped=(name,)).inputs
        for name in task.symbol_names()
    }
    other, thirds = _rivals(task, examples, seed)
    marked = [_losses(task, (examples, seed), answers) for answers in thirds]

    def third(outputs: Tensor) -> Tensor:
        return torch.stack([losses(outputs) for losses in marked]).mean(0)

    exam = exam_of(task, examples, seed)
    other_losses = _losses(task, (examples, seed), other)
    return Pairs(exam, other_losses, third, counterfactuals, task.asked_hops())


def _rivals(task: Task, examples: int, seed: int) -> tuple[Tensor, list[Tensor]]:
    """For every answer, that of the other chain, and those of third ones.

    Two chains have no third ones in their example: then those of another example are taken. A
    chain without partner has its own answers everywhere, so that it counts nowhere.
    """
    known = drawn_symbols(task, seed, examples, "validation")
    asker = askers(task, seed, examples, "validation")
    names, facts = task.symbol_names(), task.graph().facts
    columns = [names.index(facts[hop - 1].value) for hop in task.asked_hops()]
    example = torch.arange(examples)[:, None]

    def of(chain: Int[Tensor, "batch answer"], shift: int = 0) -> Tensor:
        answers: Tensor = known[example - shift, chain][:, :, columns]
        return answers

    chains = known.shape[1]
    partner = partners(chains)
    if chains == 2:
        return of(partner[asker]), [of(asker, 1), of(partner[asker], 1)]
    alone = partner == torch.arange(chains)
    thirds = []
    for number in range(chains - 2):
        rest = [
            [c for c in range(chains) if c not in (chain, int(partner[chain]))]
            for chain in range(chains)
        ]
        third = torch.tensor([
            chain if alone[chain] else rest[chain][number] for chain in range(chains)
        ])  # fmt: skip
        thirds.append(of(third[asker]))
    return of(partner[asker]), thirds


def _losses(task: Task, drawn: tuple[int, int], answers: Tensor) -> Losses:
    """The losses of outputs as these answers to the task's questions."""
    examples, seed = drawn
    batch = dataset(task, seed, examples, "validation")
    asked = Batch(batch.inputs, answers, batch.roles)

    def losses(outputs: Tensor) -> Tensor:
        return question_losses(task, outputs.to(answers.device), asked)

    return losses
