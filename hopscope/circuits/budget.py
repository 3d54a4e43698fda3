"""How much memory a search may take, and what is refused because no machine could hold it.

A search holds a residual stream for each layer on its way, the work of one call of a layer, and
what it keeps to be faster: streams that the next states begin with, and rows that are drawn. Each
of the last three has a budget in bytes. Only a single ablation that needs more may take more.
"""

from collections import OrderedDict
from collections.abc import Hashable

import torch
from torch import Tensor

from hopscope.configs import Task
from hopscope.errors import CircuitError
from hopscope.machine import memory_bytes

CALL_BYTES = 16 * 2**20
"""The most bytes that the tensors of one call of a layer may take on a processor: what its cache
holds. Larger calls wait for memory (2.4 times slower with 65 MB inside an MLP)."""
KEPT_BYTES = 64 * 2**20
"""The most bytes that are kept on a processor, of residual streams by the changes that led to them,
and of drawn rows of attention."""
GPU_CALL, GPU_KEPT = 32, 64
"""On a GPU a call may take 1/32 of its memory, and what is kept 1/64: small calls leave it idle."""

FLOAT = 4
"""Bytes of one float32 number."""
AT_ONCE = 3
"""Tensors of the size of a layer's attention in one call: scores, softmax, and what replaces it."""
WIDTHS = 12
"""Tensors of the size of a residual stream in one call (an MLP's inside counts four, twice)."""
DRAWING, ROLES, PAIRS = 4, 64, 3
"""What drawing an example takes at most: copies of its numbers, bytes for each position, and for
tokens bytes for each pair of positions; measured on three tasks."""


def call_bytes(device: torch.device) -> int:
    """How many bytes the tensors of one call may take on this device."""
    return _of_memory(device, CALL_BYTES, GPU_CALL)


def kept_bytes(device: torch.device) -> int:
    """How many bytes of streams may be kept on this device, and of drawn rows."""
    return _of_memory(device, KEPT_BYTES, GPU_KEPT)


def _of_memory(device: torch.device, processor: int, part: int) -> int:
    if device.type != "cuda":
        return processor
    return max(processor, torch.cuda.get_device_properties(device).total_memory // part)


def at_once(device: torch.device, heads: int, length: int, width: int) -> int:
    """How many examples of this length one call of a layer of this shape may take."""
    one = FLOAT * (AT_ONCE * heads * length**2 + WIDTHS * length * width)
    return max(1, call_bytes(device) // one)


class Cache:
    """Tensors by key, while they fit in so many bytes; those used longest ago go first."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held = limit, 0
        self._tensors: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable) -> Tensor | None:
        """The tensor, if it is still there."""
        found = self._tensors.get(key)
        if found is not None:
            self._tensors.move_to_end(key)
        return found

    def put(self, key: Hashable, tensor: Tensor) -> None:
        """Keep it, unless it is too large on its own."""
        if tensor.nbytes > self.limit or key in self._tensors:
            return
        if tensor.untyped_storage().nbytes() > tensor.nbytes:
            tensor = tensor.clone()  # a view would keep alive all that it is a part of
        self._tensors[key] = tensor
        self.held += tensor.nbytes
        while self.held > self.limit:
            self.held -= self._tensors.popitem(last=False)[1].nbytes


def check_examples(task: Task, examples: int) -> None:
    """Refuse examples that this machine cannot hold, before they are drawn."""
    shape = task.interface()
    numbers = shape.length * shape.numbers
    pairs = PAIRS * shape.length**2 if shape.tokens else 0
    needed = examples * (DRAWING * FLOAT * numbers + ROLES * shape.length + pairs)
    _check(needed, f"{examples:,} examples of {shape.length:,} positions")


def check_search(examples: int, stream: int, attention: int, outputs: int) -> None:
    """Refuse a search whose single ablation this machine cannot hold. `outputs` are the bytes of
    those that a loss takes of all examples at once.
    """
    needed = examples * (AT_ONCE * attention + WIDTHS * stream + outputs)
    _check(needed, f"a search with {examples:,} examples")


def _check(needed: int, what: str) -> None:
    memory = memory_bytes()
    if needed > memory:
        raise CircuitError(
            f"{what} would take about {needed / 2**30:,.0f} GiB; this machine has "
            f"{memory / 2**30:,.0f}: take fewer examples"
        )
