"""Errors as the page is told them: a status and a line, without the folders of this machine."""

import re
from collections.abc import Callable

from hopscope.errors import (
    HopscopeError,
    RunBusy,
    RunMissing,
    RunReadOnly,
    StoreError,
    StoreUnwritable,
)
from hopscope.web.policy import Refused

STATUS: tuple[tuple[type[HopscopeError], int], ...] = (
    (RunMissing, 404),
    (RunReadOnly, 403),
    (RunBusy, 409),
    (StoreUnwritable, 507),
    (StoreError, 409),
    (HopscopeError, 422),
)
"""The first class that an error belongs to says its status."""
FOLDERS = re.compile(r"(?<![\w/<:.~-])/(?:[^\s/:'\"]+/)+")
"""The folders before a file, of a path from the root."""


def refusal(error: HopscopeError, told: Callable[[Exception], str]) -> Refused:
    """What the page is told of an error."""
    if isinstance(error, Refused):
        return error
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    return Refused(status, FOLDERS.sub("", told(error)))
