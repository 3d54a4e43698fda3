"""Stop a run after a signal, at a time limit, or at the request of another thread.

The runner reads `Stop.reason` between steps. SIGINT, SIGTERM, SIGHUP (the terminal was closed) and
SIGUSR1 (a scheduler's warning before its time limit) stop the run at the next step. A second signal
has its usual effect, at once.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
TIME = "the time limit"
"""The reason of a stop at the time limit."""
REQUEUE = 75
"""The exit code that asks a scheduler to start the same command again (EX_TEMPFAIL in C)."""


def exit_code(reason: str) -> int:
    """Return the exit code of a command that was stopped.

    REQUEUE at the time limit or after a scheduler's signal (SIGTERM, SIGUSR1); otherwise 128 + the
    signal's number, as in a shell.
    """
    if reason in (TIME, signal.SIGTERM.name, signal.SIGUSR1.name):
        return REQUEUE
    if reason in signal.Signals.__members__:
        return 128 + signal.Signals[reason]
    return 128 + signal.SIGINT


class Stop:
    """A request to stop a run at its next step, with the reason."""

    def __init__(
        self, seconds: float | None = None, clock: Callable[[], float] | None = None
    ) -> None:
        self._clock = clock or time.monotonic
        self._end = None if seconds is None else self._clock() + seconds
        self._reason: str | None = None
        self._listens = False

    @property
    def reason(self) -> str | None:
        """Why to stop: a signal's name, the time limit, or the text of `ask`. None: continue."""
        if self._reason is None and self._end is not None and self._clock() >= self._end:
            self._reason = TIME
        return self._reason

    def ask(self, reason: str) -> None:
        """Ask the run to stop at its next step."""
        self._reason = reason

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Turn signals into stops within this block (in the main thread only).

        A run that stops before its end raises `Interrupted`, which leaves the block. If the block
        ends without an error, a signal that arrived is raised again after it. A nested block of the
        same stop does nothing.
        """
        if self._listens or threading.current_thread() is not threading.main_thread():
            yield
            return
        received: list[int] = []

        def note(number: int, _: FrameType | None) -> None:
            received.append(number)
            self.ask(signal.Signals(number).name)
            for each, handler in previous.items():
                signal.signal(each, handler)

        previous = {each: signal.signal(each, note) for each in _listened_to()}
        self._listens = True
        try:
            yield
        finally:
            self._listens = False
            for each, handler in previous.items():
                signal.signal(each, handler)
        for number in received:
            self._reason = None
            signal.raise_signal(number)


def _listened_to() -> list[signal.Signals]:
    """The signals to handle: not a SIGHUP that nohup ignores, nor a SIGUSR1 that has a handler."""
    others = {
        signal.SIGHUP: signal.getsignal(signal.SIGHUP) is signal.SIG_IGN,
        signal.SIGUSR1: signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL,
    }
    return [each for each in SIGNALS if not others.get(each)]
