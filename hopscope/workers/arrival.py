"""A job that arrives on another machine: does that machine see the store? Then it is done there."""

import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from hopscope.configs import Config
from hopscope.errors import RunDamaged
from hopscope.machine import keep_pages
from hopscope.store import Store
from hopscope.store.files import read_bytes, write_bytes, writing
from hopscope.store.lock import locked
from hopscope.workers.job import Job, Report, done

WORD = ".store"
"""The file of a store's mark."""
LOGS = ".logs"
"""The folder of the store in which jobs on other machines write what they print."""


class Mark(Config):
    """What tells a store from another folder of the same path: a word that is kept in it."""

    path: str
    word: str

    @classmethod
    def of(cls, store: Store) -> "Mark":
        """The mark of a store, which is made if it is not there."""
        path = store.root.absolute()
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
        with locked(path, f"another process makes runs in {store.root}", patience=60.0):
            if cls.seen(path) is None:
                write_bytes(path / WORD, secrets.token_hex(16).encode())
        seen = cls.seen(path)
        assert seen is not None
        return seen

    @classmethod
    def seen(cls, path: Path) -> "Mark | None":
        """The mark of what is at this path here; None if that is no store."""
        with suppress(RunDamaged, UnicodeDecodeError):
            return cls(path=str(path), word=read_bytes(path / WORD).decode())
        return None


class Arrived(Config):
    """What comes back from a machine."""

    refused: str = ""
    """Why this machine can do no job at all."""
    reports: tuple[Report, ...] = ()


def arrived(text: str, mark: str) -> str:
    """Do the job of this text in this process, and return what became of it as text."""
    job, wanted = Job.from_json(text), Mark.from_json(mark)
    if Mark.seen(Path(wanted.path)) != wanted:
        refused = (
            f"node {socket.gethostname()} does not see the store {wanted.path}: put it on a file "
            "system that all nodes mount at the same path, and say so with --store"
        )
        return Arrived(refused=refused).model_dump_json()
    keep_pages()
    with _printed(log_of(job)):
        return Arrived(reports=tuple(done(job))).model_dump_json()


def log_of(job: Job) -> Path:
    """The file of what a job prints, and what its process says when it crashes."""
    name = sha256("\n".join(job.recipes).encode()).hexdigest()[:10]
    return Path(job.store) / LOGS / f"{name}.log"


@contextmanager
def _printed(path: Path) -> Iterator[None]:
    """What this process prints, in C as well, goes to a file; one that stays empty is removed."""
    with writing(path):
        path.parent.mkdir(exist_ok=True)
        file = path.open("ab")
    kept = [os.dup(number) for number in (1, 2)]
    try:
        with file:
            _redirect([file.fileno()] * 2)
            yield
    finally:
        _redirect(kept)
        for number in kept:
            os.close(number)
        with suppress(OSError):
            if not path.stat().st_size:
                path.unlink()


def _redirect(targets: list[int]) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for number, target in zip((1, 2), targets, strict=True):
        os.dup2(target, number)
