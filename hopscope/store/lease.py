"""A lease on a run: who believes that it is theirs to write to, and when they were heard of last.

A lock (`hopscope.store.lock`) may hold for one machine alone, as on some file systems of clusters,
and a process that was stopped keeps it for ever. So whoever writes to a run leaves a file `.lease`
in it, with a token one higher than that of the lease before, and touches it every now and then. A
commit whose lease is not the one that is there is refused.

A lease is over when it was not touched for its seconds, by the clock of the file system, or at once
when its process is known to be dead: one of this machine, since it was started.
"""

import json
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hopscope.errors import RunBusy, RunDamaged, RunTaken
from hopscope.store.files import read_inside, remove_inside, write_inside, writing

LEASE = ".lease"
SECONDS = 60.0
"""How long a lease holds that nobody touches."""
AHEAD = 3_600.0
"""Seconds by which the clock of another machine may be ahead of ours."""
TOUCHES = 3
"""How often its holder touches it in that time."""
MOST_BYTES = 4_096
"""The largest file of a lease that is read."""


@dataclass(frozen=True)
class Lease:
    """What the file of a lease says. No two are written with the same bytes."""

    written: bytes
    age: float
    """Seconds since it was touched."""

    def said(self, key: str) -> Any:
        """What the file says of this; None if nothing, or if it is no lease."""
        with suppress(ValueError, RecursionError, AttributeError):
            return json.loads(self.written).get(key)
        return None

    @property
    def token(self) -> int:
        """The number of the lease: that of the one before it, plus one."""
        found = self.said("token")
        return found if isinstance(found, int) else 0

    @property
    def over(self) -> bool:
        """May somebody else take the run?"""
        return self.silent or self.dead

    @property
    def silent(self) -> bool:
        """Was its holder not heard of for too long?"""
        said = self.said("seconds")
        shorter = isinstance(said, int | float) and said < SECONDS
        return not -AHEAD <= self.age <= (said if shorter else SECONDS)

    @property
    def holder(self) -> str:
        """Who has it, in words."""
        return "process {} on {}".format(*(str(self.said(it))[:60] for it in ("pid", "host")))

    @property
    def dead(self) -> bool:
        """Is it of a process that this machine had, and has no more?"""
        pid = self.said("pid")
        ours = bool(_machine()) and self.said("machine") == _machine()
        return ours and isinstance(pid, int) and _born(pid) != self.said("born")


def lease_of(folder: Path, now: float | None = None) -> Lease | None:
    """The lease on a run's folder; None if there is none that can be read."""
    try:
        written = read_inside(folder, LEASE, MOST_BYTES)
        touched = (folder / LEASE).lstat().st_mtime
    except (RunDamaged, OSError):
        return None
    return Lease(written, (time.time() if now is None else now) - touched)


@contextmanager
def leased(folder: Path, name: str) -> Iterator[bytes]:
    """Hold the lease within this block, which is told the bytes by which a commit knows it."""
    before = lease_of(folder, _clock(folder))
    if before is not None and not before.over:
        raise RunBusy(
            f"{name} is leased to {before.holder}: wait for it, or for {SECONDS:.0f} seconds if "
            "that machine is gone"
        )
    mine = _written(1 if before is None else before.token + 1)
    write_inside(folder, LEASE, mine)
    try:
        with _touched(folder):
            yield mine
    finally:
        if _there(folder) == mine:
            remove_inside(folder, LEASE)


def check_lease(folder: Path, mine: bytes, name: str) -> None:
    """Refuse to write to a run that somebody else has taken since; whether its folder is there at
    all, writing finds out.
    """
    if folder.is_dir() and _there(folder) != mine:
        found = lease_of(folder)
        by = "went on elsewhere" if found is None else f"was taken over by {found.holder}"
        raise RunTaken(
            f"{name} {by}, as this process was not heard of for too long: what it computed since "
            "its last checkpoint is dropped"
        )


def _there(folder: Path) -> bytes | None:
    found = lease_of(folder)
    return None if found is None else found.written


def _written(token: int) -> bytes:
    fields = {
        "token": token,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "born": _born(os.getpid()),
        "machine": _machine(),
        "seconds": SECONDS,
        "nonce": secrets.token_hex(8),
    }
    return (json.dumps(fields, sort_keys=True) + "\n").encode()


@contextmanager
def _touched(folder: Path) -> Iterator[None]:
    """Touch the lease every now and then: the file that it is now, and none that replaces it."""
    with writing(folder / LEASE):
        descriptor = os.open(folder / LEASE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(SECONDS / TOUCHES):
            with suppress(OSError):  # a share of the network that is away; or it was replaced
                os.utime(descriptor)

    thread = threading.Thread(target=touch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        os.close(descriptor)


def _clock(folder: Path) -> float:
    """The time by the clock that dates the folder's files, which may be another machine's."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.utime(file.fileno())
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()


@cache
def _machine() -> str:
    """What tells this machine since it was started from others, and one set of processes on it from
    those of containers; nothing where it cannot be told.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _born(pid: int) -> str:
    """When a process of this machine was started, in the system's ticks; nothing if it is gone."""
    try:
        _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        state, *others = fields.split()
        return "" if state in "ZX" else others[18]
    except (OSError, IndexError, ValueError):
        return ""
