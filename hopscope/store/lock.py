"""One process at a time writes to a folder: the one that holds the file `.lock` in it.

The holder has the system's lock (flock) on that file, which ends with the process. On some cluster
file systems flock works within one machine only, and a stopped process keeps it for ever. So the
holder also writes its host and process number into the file, and touches the file regularly. A
holder that has not touched it for `SECONDS` loses the folder to the next process that asks, and
its later commits are refused.
"""

import fcntl
import json
import os
import secrets
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hopscope.errors import RunBusy, StoreError, StoreUnwritable
from hopscope.store.files import NO_LINK, read_inside, writing

LOCK = ".lock"
SECONDS = 60.0
"""Seconds without a touch after which a lock has expired."""
TOUCHES = 3
"""Touches within that time."""
AHEAD = 3_600.0
"""Seconds by which the clock of another machine may be ahead."""
PATIENCE = 0.5
"""Seconds for which to ask again: a process that only looks for the holder takes the lock too."""
MOST_BYTES = 4_096
"""The largest lock file that is read."""


@dataclass(frozen=True)
class Holder:
    """The process that wrote itself into a lock file."""

    host: str
    pid: int
    age: float
    """Seconds since its last touch, by the clock of the file system."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def local(self) -> bool:
        """Is it on this machine, where flock tells whether it lives?"""
        return self.host == socket.gethostname()

    @property
    def expired(self) -> bool:
        """Has it been silent for too long? The clock of its machine may be somewhat ahead."""
        return not -AHEAD <= self.age <= SECONDS


class Held:
    """The lock of a folder, held by this process."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder, self.descriptor = folder, descriptor
        fields = {"host": socket.gethostname(), "pid": os.getpid(), "nonce": secrets.token_hex(8)}
        self.content = (json.dumps(fields) + "\n").encode()
        with writing(folder / LOCK):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, self.content, 0)

    def check(self, name: str) -> None:
        """Refuse to write to a folder that another process has taken since. (If the folder was
        removed, the writing itself fails.)
        """
        if self.folder.is_dir() and lock_content(self.folder) != self.content:
            holder = holder_of(self.folder)
            by = "went on elsewhere" if holder is None else f"was taken over by {holder}"
            raise RunBusy(
                f"{name} {by}, as this process was not heard of for too long: what it computed "
                "since its last checkpoint is dropped"
            )

    def release(self) -> None:
        """Empty the file, unless another process has written itself into it."""
        if lock_content(self.folder) == self.content:
            with suppress(OSError):
                os.ftruncate(self.descriptor, 0)

    @contextmanager
    def touched(self) -> Iterator[None]:
        """Touch the file regularly within this block."""
        ended = threading.Event()

        def touch() -> None:
            while not ended.wait(SECONDS / TOUCHES):
                with suppress(OSError):  # a network share may be away for a while
                    os.utime(self.descriptor)

        thread = threading.Thread(target=touch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def locked(folder: Path, busy: str, patience: float = PATIENCE) -> Iterator[Held]:
    """Hold the folder's lock within this block; `busy` is the error if another process does."""
    descriptor = _acquire(folder, busy, time.monotonic() + patience)
    try:
        held = Held(folder, descriptor)
        try:
            with held.touched():
                yield held
        finally:
            held.release()
    finally:
        os.close(descriptor)


def holder_of(folder: Path) -> Holder | None:
    """The process that holds the folder's lock, as far as this machine can see."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | NO_LINK)
    except OSError:
        return None
    try:
        holder = _read(folder, descriptor)
        free = holder is None or _flock(descriptor, fcntl.LOCK_SH)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if holder is None or (free and (holder.local or holder.expired)) else holder


def lock_content(folder: Path) -> bytes:
    """What the last holder wrote; nothing if it released the lock. A killed one leaves it."""
    try:
        return read_inside(folder, LOCK, MOST_BYTES)
    except StoreError:
        return b""


def _acquire(folder: Path, busy: str, until: float) -> int:
    """A descriptor of the lock file that has the system's lock, once no other process has it."""
    while True:
        with writing(folder / LOCK):
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
        free = False
        try:
            with writing(folder / LOCK):
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise StoreUnwritable(
                        f"cannot lock {folder / LOCK}: it is not a regular file: remove it"
                    )
                free, holder = _take(folder, descriptor)
        finally:
            if not free:
                os.close(descriptor)
        if free:
            return descriptor
        if time.monotonic() >= until:
            raise RunBusy(busy if holder is None or holder.local else f"{busy} ({holder})")
        time.sleep(0.02)


def _take(folder: Path, descriptor: int) -> tuple[bool, Holder | None]:
    """Take the lock unless a living process holds it; the holder there was. The file of a stopped
    process is removed, and the next attempt makes another one.
    """
    taken = _flock(descriptor, fcntl.LOCK_EX)
    # Read afterwards: another process may just have taken over from an expired holder.
    holder, current = _read(folder, descriptor), _is_current(folder, descriptor)
    if taken:
        return current and (holder is None or holder.local or holder.expired), holder
    if current and holder is not None and holder.expired:
        (folder / LOCK).unlink(missing_ok=True)
    return False, holder


def _flock(descriptor: int, kind: int) -> bool:
    """Take the system's lock; False if another process of this machine has it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_current(folder: Path, descriptor: int) -> bool:
    """Is this still the folder's lock file? (Else the folder was made anew, or taken over.)"""
    try:
        return os.path.samestat(os.lstat(folder / LOCK), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _read(folder: Path, descriptor: int) -> Holder | None:
    """The process that is written in the file; None if there is none, or it cannot be read."""
    with suppress(ValueError, RecursionError, KeyError, TypeError):
        fields = json.loads(os.pread(descriptor, MOST_BYTES, 0))
        age = _now(folder) - os.fstat(descriptor).st_mtime
        return Holder(str(fields["host"])[:60], int(fields["pid"]), age)
    return None


def _now(folder: Path) -> float:
    """The time by the clock of the folder's file system, which may be another machine's."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.utime(file.fileno())
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()
