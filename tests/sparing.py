"""Types are checked in a few calls of each function in each test, not in all of them.

jaxtyping's checks take five times as long as what a tiny model computes. In each test, the calls
of a function are counted, and those whose number is a power of two are checked: the first ones, and
now and then one of those that come late. `conftest.py` imports this before hopscope.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jaxtyping

EVERY = jaxtyping.jaxtyped
TESTS: list[str] = []
"""Those that have begun."""


def jaxtyped(function: Any = None, *, typechecker: Any) -> Any:
    """In place of jaxtyping's own, which its import hook writes above every function and class."""
    if function is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    checked = EVERY(function, typechecker=typechecker)
    return sparing(function, checked) if inspect.isfunction(function) else checked


def sparing(function: Callable[..., Any], checked: Callable[..., Any]) -> Callable[..., Any]:
    test = calls = 0

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal test, calls
        if test != len(TESTS):
            test, calls = len(TESTS), 0
        calls += 1
        return (function if calls & (calls - 1) else checked)(*args, **kwargs)

    return called


jaxtyping.jaxtyped = jaxtyped
