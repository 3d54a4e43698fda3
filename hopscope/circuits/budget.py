"""Limits on the memory of a search, and checks that this machine has enough.

A search holds one residual stream for each layer, the tensors of one call of a layer, and two
caches: streams from which later states start, and drawn rows of attention. The last three each
have a budget in bytes. A single ablation that needs more is still run.
"""

from collections import OrderedDict
from collections.abc import Hashable

import torch
from torch import Tensor

from hopscope.configs import Task
from hopscope.errors import CircuitError
from hopscope.machine import memory_bytes

CALL_BYTES = 16 * 2**20
"""The most bytes that the tensors of one call of a layer may take on a CPU: the size of its cache.
Larger calls wait for memory (2.4 times slower with 65 MB inside an MLP)."""
KEPT_BYTES = 64 * 2**20
"""The most bytes of each cache (of residual streams, and of drawn rows of attention) on a CPU."""
GPU_CALL, GPU_KEPT = 32, 64
"""On a GPU a call may take 1/32 of its memory, and a cache 1/64: small calls would leave it idle.
"""

FLOAT = 4
"""Bytes of one float32 number."""
AT_ONCE = 3
"""Tensors of the size of a layer's attention in one call: scores, softmax, and what replaces it."""
WIDTHS = 12
"""Tensors of the size of a residual stream in one call (an MLP's inside counts four, twice)."""
DRAWING, ROLES, PAIRS = 4, 64, 3
"""The most memory that drawing an example takes: copies of its numbers, bytes for each position,
and for tokens bytes for each pair of positions; measured on three tasks."""


def call_bytes(device: torch.device) -> int:
    """How many bytes the tensors of one call may take on this device."""
    return _of_memory(device, CALL_BYTES, GPU_CALL)


def kept_bytes(device: torch.device) -> int:
    """How many bytes each cache may keep on this device."""
    return _of_memory(device, KEPT_BYTES, GPU_KEPT)


def _of_memory(device: torch.device, processor: int, part: int) -> int:
    if device.type != "cuda":
        return processor
    return max(processor, torch.cuda.get_device_properties(device).total_memory // part)


def at_once(device: torch.device, heads: int, length: int, width: int) -> int:
    """How many examples of this length fit in one call of a layer with this shape."""
    one = FLOAT * (AT_ONCE * heads * length**2 + WIDTHS * length * width)
    return max(1, call_bytes(device) // one)


class Cache:
    """A least-recently-used cache of tensors, of at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held = limit, 0
        self._tensors: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable) -> Tensor | None:
        """The tensor for this key; None if it is not in the cache."""
        found = self._tensors.get(key)
        if found is not None:
            self._tensors.move_to_end(key)
        return found

    def put(self, key: Hashable, tensor: Tensor) -> None:
        """Add a tensor, unless it alone is larger than the limit."""
        if tensor.nbytes > self.limit or key in self._tensors:
            return
        if tensor.untyped_storage().nbytes() > tensor.nbytes:
            tensor = tensor.clone()  # a view would keep its whole base tensor in memory
        self._tensors[key] = tensor
        self.held += tensor.nbytes
        while self.held > self.limit:
            self.held -= self._tensors.popitem(last=False)[1].nbytes


def check_examples(task: Task, examples: int) -> None:
    """Raise CircuitError, before drawing, if this machine cannot hold so many examples."""
    shape = task.interface()
    numbers = shape.length * shape.numbers
    pairs = PAIRS * shape.length**2 if shape.tokens else 0
    needed = examples * (DRAWING * FLOAT * numbers + ROLES * shape.length + pairs)
    _check(needed, f"{examples:,} examples of {shape.length:,} positions")


def check_search(examples: int, stream: int, attention: int, outputs: int) -> None:
    """Raise CircuitError if this machine cannot hold a single ablation of the search. `stream`,
    `attention` and `outputs` are bytes of one example: of the residual stream, of a layer's
    attention, and of the outputs that the loss needs of all examples at once.
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
