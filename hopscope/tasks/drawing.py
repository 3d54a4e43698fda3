"""Examples by number: each is a pure function of task, seed, split and its index."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from hopscope.configs import Split, Task
from hopscope.configs.recipe import SPLITS
from hopscope.errors import ConfigError
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch
from hopscope.tasks.rendering import RenderedExample, numbers_of
from hopscope.tasks.samplers import Sampler, sampler_of

CHUNK = 4096
"""How many examples are drawn at once."""


def examples(
    sampler: Sampler,
    seed: int | Int[Tensor, "rows"],
    index: Int[Tensor, "rows"],
    split: Split = "train",
    swapped: Sequence[str] = (),
) -> Batch:
    """The examples with these numbers. Pairs of chains (see `partners`) have swapped the symbols
    named in `swapped`.
    """
    return sampler.batch(_keys(seed, index, split), swapped)


def dataset(
    task: Task,
    seed: int,
    count: int,
    split: Split = "train",
    swapped: Sequence[str] = (),
) -> Batch:
    """The first `count` examples as one batch, drawn chunk by chunk."""
    if count < 1:
        raise ConfigError(f"count is {count}; a dataset has at least 1 example")
    sampler = sampler_of(task)

    def chunk(start: int) -> Batch:
        index = torch.arange(start, min(start + CHUNK, count))
        return examples(sampler, seed, index, split, swapped)

    first = chunk(0)
    whole = first.mapped(lambda rows: rows.new_empty((count, *rows.shape[1:])))
    for start in range(0, count, CHUNK):
        part = first if start == 0 else chunk(start)
        rows = slice(start, start + len(part))
        whole.mapped(lambda all_, some, rows=rows: all_[rows].copy_(some), part)
    return whole


def symbols(task: Task, seed: int, count: int, split: Split = "train") -> Tensor:
    """The symbols of each chain in the first `count` examples [batch, chain, symbol, …]: vectors,
    or for token tasks class numbers.
    """
    return sampler_of(task).symbols(_keys(seed, torch.arange(count), split))


def askers(
    task: Task, seed: int, count: int, split: Split = "train"
) -> Int[Tensor, "batch answer"]:
    """The chain of each answer in the first `count` examples."""
    return sampler_of(task).askers(_keys(seed, torch.arange(count), split))


def rendered(
    task: Task,
    seed: int,
    index: int,
    words: Sequence[str] | None = None,
    order: int | None = None,
) -> RenderedExample:
    """One example in words. `order` is the number of another example whose order of entries is
    used; `words` are symbols that replace those at its positions.
    """

    def key(number: int) -> Int[Tensor, "1"]:
        return _keys(seed, torch.tensor([number]), "validation")

    sampler = sampler_of(task)
    other = None if order is None else key(order)
    typed = None if words is None else numbers_of(words, sampler.names, task.interface().length)
    return sampler.rendered(key(index), other, typed)


def example_arrays(task: Task, seed: int, count: int = 256) -> dict[str, np.ndarray]:
    """The first validation examples as arrays, small enough to embed in a page:

    * `inputs` [example, seq, width] float32, or [example, seq] int32 for tokens
    * `targets` [example, answer, hop, dim] float32, or [example, answer, hop] int32
    * `asker` [example, answer] int16: the chain of each answer
    * `role` [example, seq] int16: the index in `task.roles()`
    * `chain` [example, seq] int16
    * `symbol` [example, seq] int32: the index in the sampler's `names`
    * `vectors` [example, symbol, dim] float32: the vector of each symbol; not for tokens
    """
    sampler = sampler_of(task)
    key = _keys(seed, torch.arange(count), "validation")
    batch, vectors = sampler.batch(key), sampler.vectors(key)

    def small(values: Tensor) -> np.ndarray:
        array: np.ndarray = values.numpy()
        return array.astype(np.float32 if values.is_floating_point() else np.int32)

    arrays = {
        "inputs": small(batch.inputs),
        "targets": small(batch.targets),
        "asker": sampler.askers(key).numpy().astype(np.int16),
        "role": batch.roles.role.numpy(),
        "chain": batch.roles.chain.numpy(),
        "symbol": small(sampler.spelling(key)),
    }
    return arrays if vectors is None else {**arrays, "vectors": small(vectors)}


def _keys(
    seed: int | Int[Tensor, "rows"], index: Int[Tensor, "rows"], split: Split
) -> Int[Tensor, "rows"]:
    seeds = torch.as_tensor(seed, device=index.device).expand_as(index)
    return counter.keys(seeds, SPLITS.index(split), index)
