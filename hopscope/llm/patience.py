"""When to send a request: not faster than agreed, and later after each refusal."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom
from threading import Lock

LONGEST_PAUSE = 60.0
"""Seconds; a server that asks for more patience than this is not waited for any longer."""

FIRST_PAUSE = 1.0
"""Seconds before the second try, less the jitter; every further pause is twice as long."""


class Throttle:
    """Hands out moments to send at, evenly spaced, to all threads in turn."""

    def __init__(self, rate: float | None, sleep: Callable[[float], None]) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._sleep = sleep
        self._free = 0.0
        self._lock = Lock()

    def wait(self) -> None:
        """Sleep until the next free moment to send at."""
        with self._lock:
            now = time.monotonic()
            moment = max(now, self._free)
            self._free = moment + self._gap
        if moment > now:
            self._sleep(moment - now)


def pause(attempt: int) -> float:
    """The seconds to wait after a failed try: doubled with each, and jittered, so that threads
    refused together do not return together.
    """
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt - 1, 10))
    return SystemRandom().uniform(longest / 2, longest)


def retry_after(header: str) -> float:
    """Seconds to wait by this header, which holds seconds or a date; 0 where it says nothing."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except (ValueError, OverflowError):  # no date, or one that no calendar has
            return 0.0
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_PAUSE)
