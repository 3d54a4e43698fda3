"""Keep freed pages: glibc otherwise returns large blocks to the system after every operation.

A training step allocates and frees the same tens of megabytes a hundred times; fetching their
pages anew each time can cost as much as the arithmetic.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4


def keep_pages() -> bool:
    """Tell the C allocator to keep what it has; False where there is no glibc to tell."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**28))
    return all(mallopt(option, value) == 1 for option, value in settings)
