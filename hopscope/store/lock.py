"""One process at a time writes to a folder: the one that holds the file `.lock` in it.

It holds the system's lock on that file (flock), which ends with the process, however that ends. On
some file systems of clusters that lock holds for one machine alone, and a process that was stopped
keeps it for ever. So the holder also writes into the file who it is, and touches it every now and
then. A holder that was silent for `SECONDS` loses the folder to the next process that asks, and
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

from hopscope.errors import RunBusy, RunDamaged, StoreUnwritable
from hopscope.store.files import NO_LINK, read_inside, writing

LOCK = ".lock"
SECONDS = 60.0
"""How long a lock holds whose holder is not heard of."""
TOUCHES = 3
"""How often its holder touches it in that time."""
AHEAD = 3_600.0
"""Seconds by which the clock of another machine may be ahead of ours."""
PATIENCE = 0.5
"""Seconds for which a lock is asked for again: who only asks whether it is held, holds it too."""
MOST_BYTES = 4_096
"""The largest file of a lock that is read."""


@dataclass(frozen=True)
class Holder:
    """Who wrote itself into the file of a lock. No two wrote the same."""

    host: str
    pid: int
    nonce: str
    age: float = 0.0
    """Seconds since it touched the file, by the clock of the file system."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def ours(self) -> bool:
        """Is it on this machine, whose system knows whether it lives?"""
        return self.host == socket.gethostname()

    @property
    def silent(self) -> bool:
        """Was it not heard of for too long?"""
        return not -AHEAD <= self.age <= SECONDS

    def written(self) -> bytes:
        """The content of the file."""
        fields = {"host": self.host, "pid": self.pid, "nonce": self.nonce}
        return (json.dumps(fields) + "\n").encode()


class Held:
    """The lock of a folder, in the hands of this process."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder, self.descriptor = folder, descriptor
        me = Holder(socket.gethostname(), os.getpid(), secrets.token_hex(8))
        self.mine = me.written()
        with writing(folder / LOCK):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, self.mine, 0)

    def check(self, name: str) -> None:
        """Refuse to write to a folder that somebody else has taken since. (That it was removed,
        writing finds out.)
        """
        if self.folder.is_dir() and marks(self.folder) != self.mine:
            found = holder_of(self.folder)
            by = "went on elsewhere" if found is None else f"was taken over by {found}"
            raise RunBusy(
                f"{name} {by}, as this process was not heard of for too long: what it computed "
                "since its last checkpoint is dropped"
            )

    def let_go(self) -> None:
        """Strike this process out, unless somebody else has written itself in."""
        if marks(self.folder) == self.mine:
            with suppress(OSError):
                os.ftruncate(self.descriptor, 0)

    @contextmanager
    def touched(self) -> Iterator[None]:
        """Touch the file every now and then within this block."""
        ended = threading.Event()

        def touch() -> None:
            while not ended.wait(SECONDS / TOUCHES):
                with suppress(OSError):  # a share of the network that is away
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
    """Hold the folder's lock within this block; `busy` is what to say if another process does."""
    descriptor = _acquired(folder, busy, time.monotonic() + patience)
    try:
        held = Held(folder, descriptor)
        try:
            with held.touched():
                yield held
        finally:
            held.let_go()
    finally:
        os.close(descriptor)


def holder_of(folder: Path) -> Holder | None:
    """Who holds the folder's lock; None if no process that this machine can see does."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | NO_LINK)
    except OSError:
        return None
    try:
        free = _taken(descriptor, fcntl.LOCK_SH)
        found = _read(folder, descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if found is None:
        return None if free else Holder(socket.gethostname(), 0, "")
    return None if free and (found.ours or found.silent) else found


def marks(folder: Path) -> bytes:
    """What the last holder wrote; nothing if it let go. Who was killed leaves it."""
    try:
        return read_inside(folder, LOCK, MOST_BYTES)
    except RunDamaged:
        return b""


def _acquired(folder: Path, busy: str, until: float) -> int:
    """A descriptor of the file, locked, where nobody else holds it."""
    while True:
        descriptor = _opened(folder)
        try:
            with writing(folder / LOCK):
                if _is_free(folder, descriptor):
                    return descriptor
                found = _read(folder, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= until:
            raise RunBusy(busy if found is None or found.ours else f"{busy} ({found})")
        time.sleep(0.02)


def _is_free(folder: Path, descriptor: int) -> bool:
    """Take the lock, if nobody holds it who lives; a stopped process's file makes way for another
    one, which is asked for next.
    """
    mine, found = _taken(descriptor, fcntl.LOCK_EX), _read(folder, descriptor)
    there = _is_there(folder, descriptor)  # else the folder was made anew since, or taken over
    if mine:
        return there and (found is None or found.ours or found.silent)
    if there and found is not None and found.silent:
        (folder / LOCK).unlink(missing_ok=True)
    return False


def _opened(folder: Path) -> int:
    with writing(folder / LOCK):
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise StoreUnwritable(f"cannot lock {folder / LOCK}: it is no regular file: remove it")


def _taken(descriptor: int, kind: int) -> bool:
    """Ask for the system's lock; False if another process of this machine has it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(folder: Path, descriptor: int) -> bool:
    """Is this still the file of the folder's lock?"""
    try:
        there = os.lstat(folder / LOCK)
    except FileNotFoundError:
        return False
    own = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)


def _read(folder: Path, descriptor: int) -> Holder | None:
    """Who wrote itself into the file; None if nobody, or in another language."""
    with suppress(ValueError, RecursionError, KeyError, TypeError):
        said = json.loads(os.pread(descriptor, MOST_BYTES, 0))
        host, pid, nonce = str(said["host"])[:60], int(said["pid"]), str(said["nonce"])[:60]
        return Holder(host, pid, nonce, _now(folder) - os.fstat(descriptor).st_mtime)
    return None


def _now(folder: Path) -> float:
    """The time by the clock that dates the folder's files, which may be another machine's."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.utime(file.fileno())
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()
