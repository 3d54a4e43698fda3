"""The calls by which a process reads and changes files below a folder: counted, logged, spoiled.

A small C library (system_calls.c), compiled at run time and preloaded, stands between the process
and the C library, so that what DuckDB and safetensors do is seen as well as what Python does.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
NONE, KILL_BEFORE, KILL_HALF, KILL_AFTER, NO_SPACE, IO_ERROR = range(6)
SPACE = ("create", "write", "rename", "link", "mkdir")
"""Calls that a full disk refuses."""
CHANGES = (*SPACE, "truncate", "resize", "fsync", "unlink", "rmdir")
"""Calls that change what is stored, or what a power cut leaves of it."""


@dataclass(frozen=True)
class Call:
    """One call that succeeded."""

    number: int
    op: str
    result: int
    flags: int
    offset: int
    path: str
    other: str
    data: bytes


def preload() -> None:
    """Start this script again with the library in front of libc; call it before anything else."""
    if hasattr(ctypes.CDLL(None), "hopscope_arm"):
        library = Path(os.environ.pop("LD_PRELOAD"))  # what we start is not watched
        library.unlink()  # loaded, and no longer needed
        library.parent.rmdir()
        return
    library = Path(tempfile.mkdtemp(prefix="hopscope-preload-")) / "system_calls.so"
    flags = ["-O2", "-Wall", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, SOURCE], check=True)
    os.environ["LD_PRELOAD"] = str(library)
    os.execv(sys.executable, sys.orig_argv)


def arm(root: Path, number: int, fault: int) -> None:
    """In a child: spoil the call with this number, counted from 1, below the root."""
    ctypes.CDLL(None).hopscope_arm(os.fsencode(root), ctypes.c_long(number), fault, -1, 0)


@contextmanager
def logged(root: Path, log: Path, data: bool = True) -> Iterator[None]:
    """In a child: log the calls below the root."""
    library = ctypes.CDLL(None)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    file = os.open(log, flags, 0o600)
    library.hopscope_arm(os.fsencode(root), ctypes.c_long(0), NONE, file, int(data))
    try:
        yield
    finally:
        library.hopscope_disarm()
        os.close(file)


def recording(root: Path, log: Path, work: Callable[[], int]) -> Callable[[], int]:
    """The work, logged."""

    def recorded() -> int:
        with logged(root, log):
            return work()

    return recorded


def read_log(log: Path) -> list[Call]:
    """What was logged, in the order of the calls."""
    content, calls, at = log.read_bytes(), [], 0
    while at < len(content):
        end = content.index(b"\n", at)
        head, path, other = content[at:end].decode(errors="surrogateescape").split("\t")
        number, op, result, flags, offset, size = head.split(" ")
        data = content[end + 1 : end + 1 + int(size)]
        at = end + 1 + int(size)
        calls.append(Call(int(number), op, int(result), int(flags), int(offset), path, other, data))
    return sorted(calls, key=lambda call: call.number)
