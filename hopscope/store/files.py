"""Atomic file writes, and safe access to the files of a run.

A file is written under a temporary name, flushed to the disk and renamed; then its folder is
flushed, so that the name survives a power cut too. The `*_inside` functions are for the files of a
run, which are in the run's folder or one folder deeper. They refuse symbolic links and anything
that is not a regular file, so that a copied folder cannot give access to files outside of it.
"""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hopscope.errors import ConfigError, RunDamaged, StoreError, StoreUnwritable

OS_REASONS = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.EACCES: "permission denied: choose another folder, or change its permissions",
    errno.EPERM: "permission denied: choose another folder, or change its permissions",
    errno.ENOTDIR: "a part of the path is a file or a symbolic link: choose another folder",
    errno.ELOOP: "a symbolic link is in the way: remove it",
    errno.EEXIST: "a file is in the way: choose another folder",
    errno.ENOENT: "its folder is gone",
    errno.ENOTEMPTY: "a folder that holds other files is in the way: move it away",
}
if not hasattr(os, "O_NOFOLLOW"):
    raise ConfigError("hopscope runs on Linux and macOS; on Windows, install and run it in WSL")
NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # opening a pipe must not wait for a writer
TEMPORARY = re.compile(r"\.(.+)\.\d{1,10}\.tmp", re.ASCII)
"""The temporary name of a file while it is written."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError within this block into StoreUnwritable, with one line about the path."""
    try:
        yield
    except OSError as error:
        reason = OS_REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StoreUnwritable(f"cannot write {path}: {reason}") from error


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turn an OSError within this block into StoreError (permission denied) or RunDamaged."""
    try:
        yield
    except FileNotFoundError as error:
        raise RunDamaged(f"{path} is missing") from error
    except PermissionError as error:
        raise StoreError(
            f"cannot read {path}: permission denied: ask its owner, or change its permissions"
        ) from error
    except OSError as error:
        link = error.errno in (errno.ELOOP, errno.ENOTDIR)
        what = "a part of the path is a symbolic link or a file" if link else error.strerror
        raise RunDamaged(f"cannot read {path}: {what}") from error


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file (or a link's target) atomically; on any error the old file is intact."""
    with writing(path):
        path = Path(os.path.realpath(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data)
        flush_folder(path.parent)


def read_bytes(path: Path) -> bytes:
    """Return the content of any file; raises RunDamaged if it is missing."""
    with reading(path):
        return path.read_bytes()


def write_inside(root: Path, files: Mapping[str, bytes]) -> None:
    """Replace files of a run's folder; after the return their names survive a power cut too."""
    for name, data in files.items():
        with writing(root / name):
            _check_folder(root, name)
            inner = (root / name).parent
            if inner != root:
                inner.mkdir(exist_ok=True)
            _replace(root / name, data)
    with writing(root):
        for folder in {root, *((root / name).parent for name in files)}:
            flush_folder(folder)


def remove_inside(root: Path, name: str) -> None:
    """Remove a file of a run's folder, if it is there."""
    with writing(root / name):
        _check_folder(root, name)
        (root / name).unlink(missing_ok=True)


def path_inside(root: Path, name: str, size: int) -> Path:
    """Return the path of a run's file; raises RunDamaged unless it is regular and of this size."""
    with reading(path := root / name):
        _check_folder(root, name)
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, "a symbolic link")
    _check_file(path, found, size, size)
    return path


def read_inside(root: Path, name: str, most: int, size: int | None = None) -> bytes:
    """Return the content of a run's file.

    Raises RunDamaged if it has more than `most` bytes, or not exactly `size` bytes (None: any).
    """
    path = f"{root}{os.sep}{name}"
    with reading(path):
        _check_folder(root, name)
        with open(os.open(path, os.O_RDONLY | NO_LINK), "rb", buffering=0) as file:  # noqa: PTH123
            _check_file(path, os.fstat(file.fileno()), most, size)
            return file.readall()


def check_files(*paths: Path | None) -> None:
    """Raise an error for files that cannot be written; None is skipped.

    Commands call this before they compute anything.
    """
    for path in filter(None, paths):
        with writing(path):
            if path.is_dir():
                raise ConfigError(f"{path} is a folder; expected a file")
            if path.exists() and not path.is_file():
                raise ConfigError(f"{path} is a pipe or a device; expected a file")
            if path.exists():
                _check_access(path, os.W_OK)
            _check_folder_access(Path(os.path.realpath(path)).parent)


def check_folder(path: Path) -> None:
    """Raise StoreUnwritable if the folder can neither be written to nor made."""
    with writing(path):
        _check_folder_access(path)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(data: bytes) -> str:
    """The SHA-256 of these bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _check_folder(root: Path, name: str) -> None:
    """Raise OSError if a run's file is in a folder that is a symbolic link."""
    inner, _, _ = name.rpartition("/")
    if inner and os.path.islink(f"{root}{os.sep}{inner}"):  # noqa: PTH114  (called for thousands)
        raise OSError(errno.ELOOP, "a symbolic link")


def _check_file(path: Path | str, found: os.stat_result, most: int, size: int | None) -> None:
    """Refuse anything but a regular file of the expected size."""
    if not stat.S_ISREG(found.st_mode):
        raise RunDamaged(f"{path} is damaged (not a regular file)")
    if size is not None and found.st_size != size:
        raise RunDamaged(f"{path} is damaged ({found.st_size} bytes, expected {size})")
    if found.st_size > most:
        raise RunDamaged(f"{path} is damaged ({found.st_size:,} bytes, expected at most {most:,})")


def _replace(path: Path, data: bytes) -> None:
    """Write a temporary file and rename it to `path`; raises for a pipe or a device."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise StoreUnwritable(f"cannot write {path}: it is a pipe or a device: choose another file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # left by a killed process with the same process id
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # the first error is the one that matters
            temporary.unlink()
        raise


def _check_folder_access(path: Path) -> None:
    """Raise OSError unless files can be made in this folder, or in its nearest existing parent."""
    while not path.exists() and path != path.parent:
        path = path.parent
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "")
    _check_access(path, os.W_OK | os.X_OK)


def _check_access(path: Path, mode: int) -> None:
    if not os.access(path, mode):
        read_only = os.statvfs(path).f_flag & os.ST_RDONLY
        raise OSError(errno.EROFS if read_only else errno.EACCES, "")
