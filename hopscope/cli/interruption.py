"""Ctrl-C at any moment is an interruption, whatever a library makes of it.

Python raises KeyboardInterrupt wherever it stands: libraries that are being imported turn it into
an ImportError, DuckDB into a RuntimeError. So that it came is noted beside. Where Python cannot
raise anything (in a finaliser) it would be lost: there it comes again a moment later.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

MOMENT = 0.05
"""Seconds after which a lost interruption comes again."""


class Interruption:
    """Remembers whether a SIGINT arrived, and tells which errors are its consequence."""

    def __init__(self) -> None:
        self.came = False

    def explains(self, error: BaseException) -> bool:
        """True if the error is a consequence of the SIGINT."""
        words = str(error)
        of_duckdb = type(error).__name__ == "InterruptException" or words == "Query interrupted"
        return self.came or of_duckdb or isinstance(error, KeyboardInterrupt)


@contextmanager
def noted_interruption() -> Iterator[Interruption]:
    """Within this block a SIGINT is noted, and raised as ever. Only a main thread can note it."""
    noted = Interruption()
    ours = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not ours or before is signal.SIG_IGN:
        yield noted
        return

    def note(_: int, __: FrameType | None) -> None:
        noted.came = True
        raise KeyboardInterrupt

    def again(lost: "UnraisableHookArgs") -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            threading.Timer(MOMENT, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            hook(lost)

    hook, sys.unraisablehook = sys.unraisablehook, again
    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook
