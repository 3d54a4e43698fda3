"""`Progress`: what an analysis does, how much of it is done, and the time left."""

import time
from collections.abc import Callable

Watch = Callable[[str], None]
"""Is called with a line of text."""


def unwatched(_: str) -> None:
    """Nobody reads the progress."""


SECONDS = 5.0
"""The least time between two progress messages within a step."""


class Progress:
    """Reports the progress of an analysis to `watch`, one line at a time."""

    def __init__(self, watch: Watch, clock: Callable[[], float] = time.monotonic) -> None:
        self.watch, self.clock = watch, clock
        self._what, self._begun, self._said = "", clock(), clock()

    def step(self, what: str) -> None:
        """Report that a new step begins."""
        self.begin(what.split(";", maxsplit=1)[0])
        self.watch(what)

    def begin(self, what: str) -> None:
        """Begin a step that is reported only if it takes long."""
        self._what, self._begun = what, self.clock()
        self._said = self._begun

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
