"""What this machine has, and how its memory is handed out."""

import ctypes
import os
import platform
import resource
import sys
import threading
from pathlib import Path

from hopscope.errors import ConfigError

MOST_THREADS = 1_024
"""Torch crashes when it is asked for very many."""
FILES = 4096
"""Files and connections that may be open, if the system allows so many."""
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4


def allow_many_files() -> None:
    """Raise the number of files that this process may have open, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < min(FILES, hard):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard), hard))


def memory_bytes() -> int:
    """The physical memory of this machine, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def out_of_memory(error: BaseException) -> str:
    """The line that says what did not fit into memory; empty for another error.

    On a processor torch raises a plain RuntimeError. Torch's own class is known by its name, since
    torch may not be imported.
    """
    said = str(error).partition("\n")[0]
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return said[:120] or type(error).__name__
    _, allocator, rest = said.partition("DefaultCPUAllocator: ")
    return rest[:120] if isinstance(error, RuntimeError) and allocator else ""


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Cores of the processor that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_root() -> Path:
    """The folder of what is fetched or measured once: $HOPSCOPE_CACHE, or ~/.cache/hopscope."""
    try:
        return Path(os.environ.get("HOPSCOPE_CACHE") or Path.home() / ".cache" / "hopscope")
    except RuntimeError as error:
        raise ConfigError(
            "the cache is below the home folder, and there is none: set HOPSCOPE_CACHE to a folder"
        ) from error


def check_threads(count: int | None) -> None:
    """Refuse a number of threads that makes no sense."""
    if count is not None and not 1 <= count <= MOST_THREADS:
        raise ConfigError(f"threads is {count}; expected 1 to {MOST_THREADS:,}")


def keep_pages() -> bool:
    """Tell the C allocator of this process to keep what it has, for good; False without glibc.

    glibc otherwise returns large blocks to the system after every operation. Training and
    discovery allocate and free the same tens of megabytes a hundred times a second; fetching
    their pages anew each time can cost as much as the arithmetic. The command line and its workers
    call this; a library leaves it to the program: its memory never shrinks from then on.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**28))
    return all(mallopt(option, value) == 1 for option, value in settings)


def wait_briefly_from_now_on() -> None:
    """Have waiting threads of GNU's OpenMP sleep soon, though it is running; else do nothing.

    While it has started more threads than there are cores, it spins for 1,000 turns instead of
    300,000. So one thread that is never used again is started beside those that compute: with a
    team of its own, which belongs to a thread that sleeps.
    """
    if not sys.platform.startswith("linux"):
        return
    loaded = ctypes.CDLL(None)
    parallel = getattr(loaded, "GOMP_parallel", None)
    if parallel is None:
        return

    def hold_a_team() -> None:
        parallel(loaded.free, None, 2, 0)  # two threads free nothing
        threading.Event().wait()

    threading.Thread(target=hold_a_team, name="hopscope-idle", daemon=True).start()
