"""The machine that this process runs on."""

import os


def memory_bytes() -> int:
    """All physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
