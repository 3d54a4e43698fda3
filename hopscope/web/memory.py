"""What is kept between questions, while it fits in so many bytes; the oldest goes first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class Memory:
    """Values by key; those used longest ago go first."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held = limit, 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = RLock()

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The value of this key, made if it is not there. One too large on its own is not kept."""
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
        """The value of this key; None if it is not there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
