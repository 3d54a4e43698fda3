"""SIGINT and SIGTERM ask the training to stop at the next step; a second one stops at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """What arrived, if anything."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Within this block signals are noted, and not obeyed. Only a main thread can note them."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, _: FrameType | None) -> None:
        request.signal = signal.Signals(number)
        for asked in SIGNALS:
            signal.signal(asked, previous[asked])

    previous = {asked: signal.signal(asked, note) for asked in SIGNALS}
    try:
        yield request
    finally:
        for asked, handler in previous.items():
            signal.signal(asked, handler)
