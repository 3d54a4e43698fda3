"""Fact graphs become batches with roles::

    sampler = sampler_of(Retrieval(hops=3))
    batch = examples(sampler, seed=0, index=torch.arange(8))

Example i is a pure function of task, seed, stream and i.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from hopscope.configs import Task
from hopscope.errors import ConfigError
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles
from hopscope.tasks.kinds import (
    Sampler,
    answer_losses,
    hop_losses,
    question_losses,
    sampler_of,
    speller_of,
)
from hopscope.tasks.loss import total
from hopscope.tasks.order import visited
from hopscope.tasks.spelled import Asked, Said, Spelled

Stream = Literal["train", "validation"]
STREAMS: dict[Stream, int] = {"train": 0, "validation": 1}
"""The number of each split in the keys of its random bits; other numbers give other examples."""
CHUNK = 4096
"""Examples that are drawn at once."""

__all__ = [
    "Asked",
    "Batch",
    "Roles",
    "Said",
    "Sampler",
    "Spelled",
    "Stream",
    "answer_losses",
    "askers",
    "dataset",
    "examples",
    "hop_losses",
    "question_losses",
    "sampler_of",
    "spelled",
    "symbols",
    "total",
    "visited",
]


def examples(
    sampler: Sampler,
    seed: int | Int[Tensor, "rows"],
    index: Int[Tensor, "rows"],
    stream: Stream = "train",
    exchanged: Sequence[str] = (),
) -> Batch:
    """Examples by number: each a pure function of task, seed, stream and its index."""
    return sampler.batch(_keys(seed, index, stream), exchanged)


def spelled(
    task: Task,
    seed: int,
    index: int,
    words: Sequence[str] | None = None,
    order: int | None = None,
    stream: Stream = "validation",
) -> Spelled:
    """One example in words: as it was drawn, in the order of another (by its number), or with
    other symbols in its places.
    """
    key, speller = _keys(seed, torch.tensor([index]), stream), speller_of(task)
    other = None if order is None else _keys(seed, torch.tensor([order]), stream)
    shown = speller.drawn(key, other)
    return shown if words is None else speller.typed(words, shown)


def symbols(
    task: Task, seed: int, count: int, stream: Stream = "train", device: torch.device | str = "cpu"
) -> Tensor:
    """What the task's symbols are in each chain of the first examples [batch, chain, symbol, …]:
    vectors, or for token tasks the numbers of classes.
    """
    sampler = sampler_of(task, device)
    return sampler.symbols(_keys(seed, torch.arange(count, device=sampler.device), stream))


def askers(
    task: Task, seed: int, count: int, stream: Stream = "train", device: torch.device | str = "cpu"
) -> Int[Tensor, "batch answer"]:
    """The chain that each answer of the first examples belongs to."""
    sampler = sampler_of(task, device)
    return sampler.askers(_keys(seed, torch.arange(count, device=sampler.device), stream))


def _keys(
    seed: int | Int[Tensor, "rows"], index: Int[Tensor, "rows"], stream: Stream
) -> Int[Tensor, "rows"]:
    seeds = torch.as_tensor(seed, device=index.device).expand_as(index)
    return counter.keys(seeds, STREAMS[stream], index)


def dataset(
    task: Task,
    seed: int,
    count: int,
    stream: Stream = "train",
    device: torch.device | str = "cpu",
    exchanged: Sequence[str] = (),
) -> Batch:
    """The first `count` examples at once, written in place chunk by chunk; in those of
    `exchanged`, every two chains have each other's symbol of these names.
    """
    if count < 1:
        raise ConfigError(f"count is {count}; a dataset has at least 1 example")
    sampler = sampler_of(task, device)

    def chunk(start: int) -> Batch:
        index = torch.arange(start, min(start + CHUNK, count), device=sampler.device)
        return examples(sampler, seed, index, stream, exchanged)

    def room(rows: Tensor) -> Tensor:
        return rows.new_empty((count, *rows.shape[1:]))

    first = chunk(0)
    whole = first.mapped(room)
    for start in range(0, count, CHUNK):
        part = first if start == 0 else chunk(start)
        rows = slice(start, start + len(part))
        whole.mapped(lambda all_, some, rows=rows: all_[rows].copy_(some), part)
    return whole
