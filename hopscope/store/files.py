"""Files that are there whole or not at all.

A file is written under a temporary name, flushed to the disk and renamed; then its folder is
flushed, so that the name survives a power cut as well. Files of a run's folder (`_inside`) lie in
it or one folder deeper. A symbolic link is an error there, and so is whatever is no regular file (a
pipe, a device), so that a folder from elsewhere leads nowhere else.
"""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hopscope.errors import ConfigError, RunDamaged, RunUnreadable, StoreUnwritable

REASONS = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.EACCES: "permission denied: choose another folder, or change its permissions",
    errno.EPERM: "permission denied: choose another folder, or change its permissions",
    errno.ENOTDIR: "a part of the path is a file or a symbolic link: choose another folder",
    errno.ELOOP: "a symbolic link is in the way: remove it",
    errno.EEXIST: "a file is in the way: choose another folder",
    errno.EISDIR: "a folder is in the way: remove it",
    errno.ENOTEMPTY: "a folder that holds other files is in the way: move it away",
    errno.ENOENT: "its folder is gone",
}
NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe without a writer would block
TEMPORARY = re.compile(r"\.(.+)\.\d{1,10}\.tmp", re.ASCII)
"""What a file is called until it is whole."""


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
    with writing(path):
        path = _meant(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data)
        flush_folder(path.parent)


def write_inside(root: Path, name: str, data: bytes) -> None:
    """Replace the file `name` of a run's folder; its name is flushed by `flush_inside`."""
    with writing(root / name):
        _check_folder(root, name)
        inner = (root / name).parent
        if not inner.is_dir() and inner != root:
            inner.mkdir()
            flush_folder(root)
        _replace(root / name, data)


def flush_inside(root: Path, names: Iterable[str]) -> None:
    """Make the names of these files survive a power cut."""
    with writing(root):
        for folder in {root, *((root / name).parent for name in names)}:
            flush_folder(folder)


def remove_inside(root: Path, name: str) -> None:
    """Remove the file `name` of a run's folder, if it is there."""
    with writing(root / name):
        _check_folder(root, name)
        (root / name).unlink(missing_ok=True)


def path_inside(root: Path, name: str, size: int | None = None, most: int | None = None) -> Path:
    """The path of the file `name` of a run's folder: a regular one, of this size or of `most` so
    many bytes, which no link leads to; anything else is a RunDamaged.
    """
    path = root / name
    with _reading(path):
        _check_folder(root, name)
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, "a symbolic link")
    if not stat.S_ISREG(found.st_mode):
        raise RunDamaged(f"{path} is damaged (no regular file)")
    if size is not None and found.st_size != size:
        raise RunDamaged(f"{path} is damaged ({found.st_size} bytes, expected {size})")
    if most is not None and found.st_size > most:
        raise RunDamaged(f"{path} is damaged ({found.st_size:,} bytes, expected at most {most:,})")
    return path


def read_inside(root: Path, name: str, most: int, size: int | None = None) -> bytes:
    """The content of the file `name` of a run's folder, which has at most so many bytes."""
    path = path_inside(root, name, size, most)
    with _reading(path), os.fdopen(os.open(path, os.O_RDONLY | NO_LINK), "rb") as file:
        return file.read()


def read_bytes(path: Path) -> bytes:
    """The content of a file that somebody named; a missing or unreadable one is a RunDamaged."""
    with _reading(path):
        return path.read_bytes()


def check_files(*paths: Path | None) -> None:
    """Refuse files that cannot be written, before anything is computed for them: a folder, a pipe
    or a device, or in a folder that takes none. None is a file that is not asked for.
    """
    for path in filter(None, paths):
        with writing(path):
            if path.is_dir():
                raise ConfigError(f"{path} is a folder; expected a file")
            if path.exists():
                if not path.is_file():
                    raise ConfigError(f"{path} is a pipe or a device; expected a file")
                _try(path)
            _try_folder(_meant(path).parent)


def check_folder(path: Path) -> None:
    """Refuse a folder that can neither be written to nor made."""
    with writing(path):
        _try_folder(path)


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


def _meant(path: Path) -> Path:
    """The file that is to be written, by the name that was given: a link stands for its target."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _check_folder(root: Path, name: str) -> None:
    """Refuse a file of a run that lies in a folder which is a link."""
    inner, _, _ = name.rpartition("/")
    if inner and os.path.islink(f"{root}{os.sep}{inner}"):  # noqa: PTH114  (of thousands)
        raise OSError(errno.ELOOP, "a symbolic link")


def _replace(path: Path, data: bytes) -> None:
    """Put a file in the place of a regular one, or of none."""
    with suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
            raise StoreUnwritable(  # others read from it
                f"cannot write {path}: it is a pipe or a device: choose another file"
            )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # of a killed process that had our number
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb"
        ) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # the error that matters is the first one
            temporary.unlink()
        raise


def _try_folder(path: Path) -> None:
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "")
    _try(there, os.X_OK)


def _try(path: Path, more: int = 0) -> None:
    """What the system would answer to a writer."""
    if not os.access(path, os.W_OK | more):
        frozen = os.statvfs(path).f_flag & os.ST_RDONLY
        raise OSError(errno.EROFS if frozen else errno.EACCES, "")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turns the system's refusals into one line about the path."""
    try:
        yield
    except FileNotFoundError as error:
        raise RunDamaged(f"{path} is missing") from error
    except ValueError as error:  # a NUL in the name
        raise RunDamaged(f"{str(path)!r} is no file name: {error}") from error
    except PermissionError as error:
        raise RunUnreadable(
            f"cannot read {path}: permission denied: ask its owner, or change its permissions"
        ) from error
    except OSError as error:
        link = error.errno in (errno.ELOOP, errno.ENOTDIR)
        what = "a part of the path is a symbolic link or a file" if link else error.strerror
        raise RunDamaged(f"cannot read {path}: {what}") from error
