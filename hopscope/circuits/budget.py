"""Limits on the memory of a search, and checks that this machine has enough.

A search holds one residual stream for each layer, the tensors of one call of a layer, and for each
set of examples (the sketch, all, and fresh ones) two caches: streams from which later states start,
and drawn rows of attention. A call, an ablation and each cache have a budget in bytes. An ablation
that needs more runs on a slice of the examples at a time.
"""

from collections.abc import Mapping, Sequence
from math import prod

import torch

from hopscope.configs import Task
from hopscope.errors import CircuitError
from hopscope.machine import memory_bytes

CALL_BYTES = 16 * 2**20
"""The most bytes that the tensors of one call of a layer may take on a CPU: the size of its cache.
Larger calls wait for memory (2.4 times slower with 65 MB inside an MLP)."""
KEPT_BYTES = 64 * 2**20
"""The most bytes of each cache (of residual streams, and of drawn rows of attention) on a CPU."""
ABLATION_BYTES = 2 * 2**30
"""The most bytes that one ablation may take in a layer on a CPU, over all its calls. Ablations on
more or longer examples run on a slice of the examples at a time."""
GPU_CALL, GPU_KEPT, GPU_ABLATION = 32, 64, 8
"""On a GPU a call may take 1/32 of its memory, a cache 1/64, and an ablation in a layer 1/8: small
calls would leave it idle."""

CACHES = 6
"""The caches of a search: two for each of the three sets of examples."""

FLOAT = 4
"""Bytes of one float32 number."""
AT_ONCE = 3
"""Tensors of the size of a layer's attention in one call: scores, softmax, and what replaces it."""
WIDTHS = 12
"""Tensors of the size of a residual stream in one call (an MLP's inside counts four, twice)."""
RECORDED = 2
"""Tensors with the outputs of the heads of all layers that scores compare with: as they are, and of
the example before."""
DRAWING, ROLES, PAIRS = 4, 64, 3
"""The most memory that drawing an example takes: copies of its numbers, bytes for each position,
and for tokens bytes for each pair of positions; measured on three tasks."""
STREAMS = 24
"""The memory that a probe takes at most, in residual streams of the examples that it is fitted on.
Four models of the gallery took 14 to 24."""

DOUBLE, MAPS = 8, 7
"""Bytes of one float64 number, and copies of its maps that fitting a probe of tokens holds."""


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
    return max(1, call_bytes(device) // layer_bytes(heads, length, width))


def ablated_at_once(device: torch.device, heads: int, length: int, width: int) -> int:
    """How many examples of this length are ablated together: full calls, if more than one."""
    call = at_once(device, heads, length, width)
    most = _of_memory(device, ABLATION_BYTES, GPU_ABLATION) // layer_bytes(heads, length, width)
    return max(call, most // call * call)


def layer_bytes(heads: int, length: int, width: int) -> int:
    """How many bytes an example of this length takes in a layer with this shape."""
    return FLOAT * (AT_ONCE * heads * length**2 + WIDTHS * length * width)


def check_examples(task: Task, examples: int, advice: str = "take fewer examples") -> None:
    """Raise CircuitError, before drawing, if this machine cannot hold so many examples."""
    shape = task.interface()
    numbers = shape.length * shape.numbers
    pairs = PAIRS * shape.length**2 if shape.tokens else 0
    needed = examples * (DRAWING * FLOAT * numbers + ROLES * shape.length + pairs)
    _check(needed, f"{examples:,} examples of {shape.length:,} positions", advice)


def check_ablation(examples: int, length: int, needed: int) -> None:
    """Raise CircuitError if this machine cannot hold the `needed` bytes of a single ablation."""
    what = f"an ablation on {examples:,} examples of {length:,} positions"
    _check(needed, what, "take fewer or shorter examples")


def check_streams(examples: int, length: int, width: int) -> None:
    """Raise CircuitError if this machine cannot hold the streams of all examples."""
    what = f"residual streams of {examples:,} examples of {length:,} positions"
    _check(STREAMS * FLOAT * examples * length * width, what, "take fewer examples")


def check_maps(width: int, targets: int, classes: int) -> None:
    """Raise CircuitError if this machine cannot hold the maps from a stream to tokens."""
    what = f"maps from {width:,} numbers to {classes:,} tokens"
    advice = "take a task with fewer different tokens"
    _check(MAPS * DOUBLE * width * targets * classes, what, advice)


def check_search(least: int, needed: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    """Raise CircuitError if this machine cannot hold a search. `least` are the bytes that it takes
    for any number of examples, and `needed` the bytes beyond for each of the `sizes`, by name.
    """
    advice = "take shorter examples with fewer different tokens, or a model with fewer heads"
    _check(least, "a search, with tables for all heads,", advice)
    over = [name for name, its in needed.items() if least + its > memory_bytes()]
    if over:
        what = " and ".join(f"{name}={sizes[name]:,}" for name in over)
        most = least + max(needed[name] for name in over)
        _check(most, f"a search with {what}", f"lower {' and '.join(over)}")


def check_scores(sizes: Sequence[int]) -> None:
    """Raise CircuitError if this machine cannot hold a method's scores (float64) of arrows."""
    advice = "take a circuit of a task with fewer hops, or a model with fewer heads"
    _check(2 * FLOAT * prod(sizes), "the scores of all arrows", advice)


def _check(needed: int, what: str, advice: str) -> None:
    memory = memory_bytes()
    if needed > memory:
        raise CircuitError(
            f"{what} would take about {needed / 2**30:,.0f} GiB; this machine has "
            f"{memory / 2**30:,.0f}: {advice}"
        )
