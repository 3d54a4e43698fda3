"""SIGINT, SIGTERM and SIGHUP (the terminal was closed) ask the training to stop at the next step; a
second one stops at once. So does the end of the time that was allowed, as if it were a SIGALRM.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


_END: ContextVar[float | None] = ContextVar("_END", default=None)
"""When trainings have to stop, by the monotonic clock."""


class StopRequest:
    """What arrived, if anything."""

    def __init__(self) -> None:
        self._arrived: signal.Signals | None = None

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that asked, or SIGALRM once the time is over."""
        if self._arrived is None and time_is_over():
            self._arrived = signal.SIGALRM
        return self._arrived

    def note(self, number: int) -> None:
        self._arrived = signal.Signals(number)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Within this block, trainings stop after these seconds, with a checkpoint."""
    token = _END.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _END.reset(token)


def time_is_over() -> bool:
    """Has the time ended that was allowed?"""
    end = _END.get()
    return end is not None and time.monotonic() >= end


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Within this block signals are noted, and not obeyed. Only a main thread can note them.

    One that nobody obeyed, since it came when the work was done, is raised again behind the block.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, _: FrameType | None) -> None:
        request.note(number)
        for asked, handler in previous.items():
            signal.signal(asked, handler)

    previous = {asked: signal.signal(asked, note) for asked in _heard()}
    try:
        yield request
    finally:
        for asked, handler in previous.items():
            signal.signal(asked, handler)
    if request.signal in SIGNALS:
        signal.raise_signal(request.signal)


def _heard() -> list[signal.Signals]:
    """A hang-up that was to be ignored (by nohup) stays ignored."""
    deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [asked for asked in SIGNALS if not (deaf and asked is signal.SIGHUP)]
