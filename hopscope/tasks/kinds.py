"""The table of tasks in this room: what draws the examples of each kind, marks the answers, and
tells them in words.

Everybody else asks the task, or the functions below; nobody asks which task it is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs import Task
from hopscope.tasks.batch import Batch
from hopscope.tasks.khop import KHopSampler
from hopscope.tasks.mqar import MQARSampler
from hopscope.tasks.spelled import Spelled
from hopscope.tasks.spelled_khop import KHopSpeller
from hopscope.tasks.spelled_mqar import MQARSpeller
from hopscope.tasks.spelled_vectors import VectorSpeller
from hopscope.tasks.vector import VectorSampler


@runtime_checkable
class Sampler(Protocol):
    """Draws the examples of one kind of task, and marks the answers to them."""

    device: torch.device
    ragged: bool
    """Do shapes on the way depend on what is drawn? Then a CUDA graph cannot record it."""
    example_bytes: int
    """The memory that drawing one example takes, within a factor of two."""

    def __init__(self, task: Any, device: torch.device) -> None: ...

    def batch(self, key: Int[Tensor, "rows"], exchanged: Sequence[str] = ()) -> Batch:
        """One example per key: a pure function of the key.

        `exchanged` names symbols that chains have of one another (see hopscope.tasks.pairs).
        """
        ...

    def symbols(self, key: Int[Tensor, "rows"]) -> Tensor:
        """What the task's symbols are in each chain [rows, chain, symbol, …]: vectors, or the
        numbers of classes.
        """
        ...

    def askers(self, key: Int[Tensor, "rows"]) -> Int[Tensor, "rows answer"]:
        """The chain that each answer belongs to."""
        ...

    @staticmethod
    def answer_losses(
        task: Any, outputs: Float[Tensor, "*model batch read width"], batch: Batch
    ) -> Float[Tensor, "*model batch answer hop"]:
        """The loss of every single answer."""
        ...


@runtime_checkable
class Speller(Protocol):
    """Tells the examples of one kind of task in words."""

    def __init__(self, task: Any) -> None: ...

    @property
    def names(self) -> tuple[str, ...]:
        """What each symbol or token is called, and behind them answers that are no token."""
        ...

    def drawn(self, key: Int[Tensor, "rows"], order: Int[Tensor, "rows"] | None = None) -> Spelled:
        """The example of a key; of another key, its order alone."""
        ...

    def typed(self, words: Sequence[str], shown: Spelled) -> Spelled:
        """The same example with other symbols in its places."""
        ...

    def tables(self) -> dict[str, Any]:
        """How examples are drawn and marked, as plain data for whoever draws them elsewhere."""
        ...


class Kind(NamedTuple):
    """What a kind of task needs in this room."""

    sampler: type[Sampler]
    speller: type[Speller]


BY_KIND: dict[str, Kind] = {
    "retrieval": Kind(VectorSampler, VectorSpeller),
    "induction": Kind(VectorSampler, VectorSpeller),
    "conditional": Kind(VectorSampler, VectorSpeller),
    "khop": Kind(KHopSampler, KHopSpeller),
    "mqar": Kind(MQARSampler, MQARSpeller),
}


def speller_of(task: Task) -> Speller:
    """What tells the examples of this task in words."""
    return BY_KIND[task.kind].speller(task)


def sampler_of(task: Task, device: torch.device | str = "cpu") -> Sampler:
    """The sampler that draws the examples of this task."""
    return BY_KIND[task.kind].sampler(task, torch.device(device))


def answer_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model batch answer hop"]:
    """The loss of every single answer: squared error, or cross-entropy for tokens.

    The outputs may have more axes in front than the batch: several answers to the same questions.
    """
    return BY_KIND[task.kind].sampler.answer_losses(task, outputs, batch)


def hop_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model hop"]:
    """The partial loss of every asked hop: the mean over all answers."""
    losses: Tensor = answer_losses(task, outputs, batch).mean(dim=(-3, -2))
    return losses


def question_losses(
    task: Task, outputs: Float[Tensor, "*model batch read width"], batch: Batch
) -> Float[Tensor, "*model batch hop"]:
    """Each example's loss over the questions that its roles describe."""
    last = task.described()
    if last is not None:
        batch = Batch(batch.inputs, batch.targets[:, -last:], batch.roles)
        outputs = outputs[..., -last:, :]
    return torch.mean(answer_losses(task, outputs, batch), dim=-2)
