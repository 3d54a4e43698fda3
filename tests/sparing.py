"""Types are checked in a few calls of each function in each test, not in all of them.

jaxtyping's checks take five times as long as what a tiny model computes. In each test, the calls
of a function are counted, and those whose number is a power of two are checked: the first ones, and
now and then one of those that come late. `conftest.py` imports this before hopscope.
"""

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable
from types import CodeType
from typing import Any

import jaxtyping

EVERY = jaxtyping.jaxtyped
CALLS: dict[CodeType, list[int]] = defaultdict(lambda: [0])
"""In this test, of every function: one within another is made anew, and counted on."""

KERNELS = "hopscope.models.cuda_ops"
"""Triton has to find what a kernel calls as it is written."""


def next_test() -> None:
    for calls in CALLS.values():
        calls[0] = 0


def jaxtyped(function: Any = None, *, typechecker: Any) -> Any:
    """In place of jaxtyping's own, which its import hook writes above every function and class."""
    if function is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if function.__module__ == KERNELS:
        return function
    check = functools.partial(EVERY, typechecker=typechecker)
    return sparing(function, check) if inspect.isfunction(function) else check(function)


def sparing(function: Any, check: Callable[..., Any]) -> Callable[..., Any]:
    calls = CALLS[function.__code__]
    checked = None

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        calls[0] += 1
        if calls[0] & (calls[0] - 1):
            return function(*args, **kwargs)
        checked = checked or check(function)
        return checked(*args, **kwargs)

    return called


if __name__ == "sparing":  # and not a second copy: pytest makes one where it is given this file
    jaxtyping.jaxtyped = jaxtyped
