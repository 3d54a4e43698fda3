"""What this machine has."""

import os


def memory_bytes() -> int:
    """Its physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
