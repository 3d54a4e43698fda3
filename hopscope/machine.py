"""What this machine has, and how its memory is handed out."""

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4


def memory_bytes() -> int:
    """Its physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def keep_pages() -> bool:
    """Tell the C allocator to keep what it has; False where there is no glibc to tell.

    glibc otherwise returns large blocks to the system after every operation. Training and
    discovery allocate and free the same tens of megabytes a hundred times a second; fetching
    their pages anew each time can cost as much as the arithmetic.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**28))
    return all(mallopt(option, value) == 1 for option, value in settings)
