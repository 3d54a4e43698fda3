"""A lock on a folder: only the process that holds its file `.lock` writes to the folder.

The holder has the system's lock (flock) on that file, which ends with the process. On some cluster
file systems flock works within one machine only, and a stopped process keeps it forever. So the
holder also writes its host and process id into the file, and touches the file regularly. If a
holder has not touched it for `LEASE_SECONDS`, the next process that asks takes over the folder, and
later commits of the old holder are refused.
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
LEASE_SECONDS = 60.0
"""Seconds without a touch after which a lock has expired."""
TOUCHES = 3
"""Number of touches within `LEASE_SECONDS`."""
AHEAD = 3_600.0
"""Seconds by which the clock of another machine may be ahead."""
PATIENCE = 0.5
"""Seconds to retry: a process that only looks for the holder also takes the lock for a moment."""
MOST_BYTES = 4_096
"""Largest size of a lock file that is read, in bytes."""


@dataclass(frozen=True)
class Holder:
    """The process named in a lock file."""

    host: str
    pid: int
    age: float
    """Seconds since its last touch, by the clock of the file system."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def local(self) -> bool:
        """Whether the process is on this machine, where flock shows if it is alive."""
        return self.host == socket.gethostname()

    @property
    def expired(self) -> bool:
        """Whether the last touch is too old. (The clock of the holder's machine may be ahead.)"""
        return not -AHEAD <= self.age <= LEASE_SECONDS


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
        """Raise RunBusy if another process has taken over the folder.

        If the folder was removed, this passes, and the write that follows fails.
        """
        if self.folder.is_dir() and lock_content(self.folder) != self.content:
            holder = holder_of(self.folder)
            by = "was continued elsewhere" if holder is None else f"was taken over by {holder}"
            raise RunBusy(
                f"{name} {by}, because this process did not update its lock for too long: what it "
                "computed since its last checkpoint is dropped"
            )

    def release(self) -> None:
        """Empty the lock file, unless another process has taken it over."""
        if lock_content(self.folder) == self.content:
            with suppress(OSError):
                os.ftruncate(self.descriptor, 0)

    @contextmanager
    def touched(self) -> Iterator[None]:
        """Touch the file regularly within this block."""
        ended = threading.Event()

        def touch() -> None:
            while not ended.wait(LEASE_SECONDS / TOUCHES):
                with suppress(OSError):  # a network share may be unavailable for a while
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
    """Hold the folder's lock within this block.

    Raises RunBusy with the text `busy` if another process still holds it after `patience` seconds.
    """
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
    """Return the process that holds the folder's lock; None if this machine can see none."""
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
    """Return what the last holder wrote: empty after a release, but not after a kill."""
    try:
        return read_inside(folder, LOCK, MOST_BYTES)
    except StoreError:
        return b""


def _acquire(folder: Path, busy: str, until: float) -> int:
    """Wait for the lock until the time `until`; return the descriptor of the locked file."""
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
    """Try to take the lock; return whether it was taken, and the previous holder.

    The file of an expired holder is removed; the next attempt makes a new one.
    """
    taken = _flock(descriptor, fcntl.LOCK_EX)
    # Read after flock: another process may just have taken over from an expired holder.
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
    """Return whether the descriptor is still the folder's lock file.

    It is not if the folder was made again, or if another process replaced the file.
    """
    try:
        return os.path.samestat(os.lstat(folder / LOCK), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _read(folder: Path, descriptor: int) -> Holder | None:
    """Return the process named in the lock file; None if there is none or it is unreadable."""
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
