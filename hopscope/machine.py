"""The machine's memory, processor, cores and cache folder; settings of allocator and threads."""

import ctypes
import os
import platform
import resource
import sys
import threading
from pathlib import Path

from hopscope.errors import ConfigError

MOST_THREADS = 1_024
"""The most threads that can be set: torch crashes with very many."""
FILES = 4096
"""The number of open files and connections to ask for, if the system allows it."""
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
    """The processor's name, or its architecture if the system gives no name."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """The number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_root() -> Path:
    """The folder for downloads and cached measurements: $HOPSCOPE_CACHE or ~/.cache/hopscope."""
    try:
        return Path(os.environ.get("HOPSCOPE_CACHE") or Path.home() / ".cache" / "hopscope")
    except RuntimeError as error:
        raise ConfigError(
            "there is no home folder for the cache: set HOPSCOPE_CACHE to a folder"
        ) from error


def check_threads(count: int | None) -> None:
    """Raise ConfigError if the number of threads is below 1 or above MOST_THREADS."""
    if count is not None and not 1 <= count <= MOST_THREADS:
        raise ConfigError(f"threads is {count}; expected 1 to {MOST_THREADS:,}")


def keep_pages() -> bool:
    """Make glibc's allocator keep freed memory for reuse; returns False without glibc.

    Otherwise glibc returns large blocks to the system after every operation. Training and
    discovery allocate and free the same tens of megabytes a hundred times a second; getting the
    pages back each time can cost as much as the arithmetic. Only the command line and its workers
    call this, not the library: from then on, the memory of the process never shrinks.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**28))
    return all(mallopt(option, value) == 1 for option, value in settings)


def wait_briefly_from_now_on() -> None:
    """Make waiting threads of GNU OpenMP sleep soon, even if OpenMP is loaded already; do nothing
    without it.

    While more OpenMP threads exist than cores, waiting threads spin for 1,000 turns instead of
    300,000. So this function starts one more OpenMP thread that is never used: a Python thread
    opens a team of two threads and then sleeps for good.
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
