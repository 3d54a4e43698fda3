"""The samplers, by task: each draws a task's examples, renders them in words, and computes losses.

All other code uses the task's methods or the functions below, and does not depend on the kind of
task.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs import Task
from hopscope.tasks.batch import Batch
from hopscope.tasks.counter import Keys
from hopscope.tasks.khop import KHopSampler
from hopscope.tasks.mqar import MQARSampler
from hopscope.tasks.rendering import RenderedExample
from hopscope.tasks.vector import VectorSampler


@runtime_checkable
class Sampler(Protocol):
    """Draws the examples of one task, each as a pure function of its key.

    Shapes must not depend on random numbers, since on a GPU a training step is recorded once.
    """

    device: torch.device
    example_bytes: int
    """The bytes that drawing one example takes, within a factor of two."""
    names: tuple[str, ...]
    """The name of each symbol or token, by its number."""
    candidates: tuple[str, ...]
    """The name of each answer, by its number."""

    def __init__(self, task: Any, device: torch.device) -> None: ...

    def batch(self, key: Keys, swapped: Sequence[str] = ()) -> Batch:
        """One example per key; pairs of chains (see `partners`) have swapped the symbols in
        `swapped`.
        """
        ...

    def spelling(self, key: Keys) -> Int[Tensor, "rows seq"]:
        """The number of the symbol at every position."""
        ...

    def vectors(self, key: Keys) -> Float[Tensor, "rows symbol dim"] | None:
        """The vector of each symbol, by its number; None if symbols are tokens."""
        ...

    def symbols(self, key: Keys) -> Tensor:
        """The symbols of each chain [rows, chain, symbol, …], as vectors or class numbers."""
        ...

    def askers(self, key: Keys) -> Int[Tensor, "rows answer"]:
        """The chain that each answer belongs to."""
        ...

    def rendered(self, key: Keys, order: Keys | None, typed: list[int] | None) -> RenderedExample:
        """The example of a key in words. `order` is the key of another example whose order is used;
        `typed` are the numbers of symbols that replace those at its positions.
        """
        ...

    @staticmethod
    def answer_losses(
        task: Any, outputs: Float[Tensor, "*model batch read width"], batch: Batch
    ) -> Float[Tensor, "*model batch answer hop"]:
        """The loss of every single answer."""
        ...


SAMPLERS: dict[str, type[Sampler]] = {
    "retrieval": VectorSampler,
    "induction": VectorSampler,
    "conditional": VectorSampler,
    "khop": KHopSampler,
    "mqar": MQARSampler,
}


def sampler_of(task: Task, device: torch.device | str = "cpu") -> Sampler:
    """The sampler that draws the examples of this task."""
    return SAMPLERS[task.kind](task, torch.device(device))


def answer_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model batch answer hop"]:
    """The loss of every single answer: squared error, or cross-entropy for tokens.

    The outputs may have more leading axes than the batch, for several sets of answers to the same
    questions.
    """
    return SAMPLERS[task.kind].answer_losses(task, outputs, batch)


def hop_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model hop"]:
    """The loss of every asked hop: the mean over examples and answers."""
    losses: Tensor = answer_losses(task, outputs, batch).mean(dim=(-3, -2))
    return losses


def question_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model batch hop"]:
    """Each example's loss over the questions that its roles describe."""
    last = task.labelled_positions()
    if last is not None:
        batch = Batch(batch.inputs, batch.targets[:, -last:], batch.roles)
        outputs = outputs[..., -last:, :]
    return torch.mean(answer_losses(task, outputs, batch), dim=-2)
