"""`Progress`: what an analysis does, how much of it is done, and the time left.

The lines go to the function that `watched` names, and nowhere without it. So no analysis has an
argument for it, and all of them can be watched.
"""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Watch = Callable[[str], None]
"""Is called with a line of text."""

SECONDS = 5.0
"""The least time between two progress messages within a step."""

_watch: ContextVar[Watch] = ContextVar("watch", default=lambda _: None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Call `watch` with a line of text for each step of an analysis, and every few seconds."""
    before = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(before)


class Progress:
    """Reports the progress of an analysis, one line at a time. It begins with a step that is
    reported only if it takes long.
    """

    def __init__(self, what: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.watch, self.clock = _watch.get(), clock
        self._begin(what)

    def _begin(self, what: str) -> None:
        self._what, self._begun = what, self.clock()
        self._said = self._begun

    def step(self, what: str) -> None:
        """Report that a new step begins."""
        self._begin(what.split(";", maxsplit=1)[0])
        self.watch(what)

    def at(self, done: int, total: int) -> None:
        """Report how many parts of the step are done, and the time left (if all parts take equally
        long).
        """
        now = self.clock()
        if done < 1 or now < self._said + SECONDS:
            return
        self._said = now
        left = (now - self._begun) / done * (total - done)
        self.watch(f"{self._what}: {done} of {total}, about {left:.0f} s left")


def counted(what: str, parts: Collection[T]) -> Iterator[T]:
    """The parts of a step, one by one; reports how many are done."""
    progress = Progress(what)
    for done, part in enumerate(parts):
        progress.at(done, len(parts))
        yield part
