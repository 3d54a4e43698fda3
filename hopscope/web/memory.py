"""A cache between requests, limited in bytes; the least recently used value is dropped first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class Memory:
    """Values by key, at most `limit` bytes; the least recently used are dropped first."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held = limit, 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = RLock()

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value of this key, or make it; a value larger than the limit is not kept."""
        found: T | None = self.known(key)
        if found is not None:
            return found
        made = make()
        bytes_ = size(made)
        with self._lock:
            if bytes_ <= self.limit and key not in self._values:
                self._values[key] = made, bytes_
                self.held += bytes_
            while self.held > self.limit:
                self.held -= self._values.popitem(last=False)[1][1]
        return made

    def known(self, key: Hashable) -> Any:
        """Return the value of this key; None if absent."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]
