"""A cache of values that are limited in bytes together."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class Memory:
    """Values by key, at most `limit` bytes; the least recently used are dropped first. Several
    threads may use it.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.held = limit, 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = RLock()

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value of this key, or make and keep it."""
        found: T | None = self.known(key)
        if found is None:
            found = make()
            self.keep(key, found, size(found))
        return found

    def keep(self, key: Hashable, value: object, bytes_: int) -> None:
        """Keep a value of this size, unless it alone is larger than the limit."""
        with self._lock:
            if bytes_ <= self.limit and key not in self._values:
                self._values[key] = value, bytes_
                self.held += bytes_
            while self.held > self.limit:
                self.held -= self._values.popitem(last=False)[1][1]

    def known(self, key: Hashable) -> Any:
        """Return the value of this key; None if absent."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]
