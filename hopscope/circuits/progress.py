"""How far a search is: what it does now, how much is done, how long the rest may take."""

import time
from collections.abc import Callable

SECONDS = 5.0
"""Within a step, nothing is said more often than this."""


class Progress:
    """Tells a watcher in one line at a time."""

    def __init__(
        self, watch: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.watch, self.clock = watch, clock
        self._what, self._begun, self._said = "", clock(), clock()

    def step(self, what: str) -> None:
        """A new step begins."""
        self._what, self._begun = what.split(";", maxsplit=1)[0], self.clock()
        self._said = self._begun
        self.watch(what)

    def at(self, done: int, total: int) -> None:
        """So many parts of the step are done; as if all of them took the same time."""
        now = self.clock()
        if done < 1 or now < self._said + SECONDS:
            return
        self._said = now
        left = (now - self._begun) / done * (total - done)
        self.watch(f"{self._what}: {done} of {total}, about {left:.0f} s left")
