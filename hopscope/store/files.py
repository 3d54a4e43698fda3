"""Files that are there whole or not at all.

A file is written under a temporary name, flushed to the disk and renamed; then its folder is
flushed, so that the name survives a power cut as well.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hopscope.errors import RunDamaged, StoreUnwritable

REASONS = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.EACCES: "permission denied: choose another folder, or change its permissions",
    errno.EPERM: "permission denied: choose another folder, or change its permissions",
    errno.ENOTDIR: "a part of the path is a file: choose another folder",
    errno.EEXIST: "a file is in the way: choose another folder",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the system's refusals into one line about the path."""
    try:
        yield
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StoreUnwritable(f"cannot write {path}: {reason}") from error


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file atomically; whatever goes wrong, the old one is intact."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):  # the error that matters is the first one
                temporary.unlink()
            raise
        flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bytes(path: Path) -> bytes:
    """The file's content; a missing or unreadable file is a RunDamaged."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise RunDamaged(f"{path} is missing") from error
    except OSError as error:
        raise RunDamaged(f"cannot read {path}: {error.strerror}") from error


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
