"""One process at a time writes to a run, or makes runs in a store: a lock on a file `.lock`.

It ends with its process, however that ends. The file stays, and nothing is ever written to it.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hopscope.errors import RunBusy, StoreUnwritable
from hopscope.store.files import NO_LINK, opened, writing

LOCK = ".lock"
PATIENCE = 0.5
"""Seconds for which a lock is asked for again: who only asks whether it is held, holds it too."""


@contextmanager
def locked(folder: Path, busy: str, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the folder's lock; `busy` is what to say if another process holds it."""
    descriptor = _acquired(folder, busy, time.monotonic() + patience)
    try:
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Does a process hold the folder's lock? One that cannot be asked for, nobody of ours holds."""
    try:
        with opened(folder) as inside:
            descriptor = os.open(LOCK, os.O_RDONLY | NO_LINK, dir_fd=inside)
        try:
            return not _taken(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)
    except OSError:
        return False


def _taken(descriptor: int, kind: int) -> bool:
    """Ask for the lock; False if another process has it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _acquired(folder: Path, busy: str, until: float) -> int:
    while True:
        descriptor = _opened(folder)
        try:
            with writing(folder / LOCK):
                held = _taken(descriptor, fcntl.LOCK_EX)
                if held and _is_of(folder, descriptor):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # of another process; or the folder was made anew since
        if not held and time.monotonic() >= until:
            raise RunBusy(busy)
        time.sleep(0.02)


def _opened(folder: Path) -> int:
    with writing(folder / LOCK), opened(folder) as inside:
        descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666, dir_fd=inside)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise StoreUnwritable(f"cannot lock {folder / LOCK}: it is no regular file: remove it")


def _is_of(folder: Path, descriptor: int) -> bool:
    try:
        there = (folder / LOCK).lstat()
    except FileNotFoundError:
        return False
    own = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)
