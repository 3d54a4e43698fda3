"""Files that are there whole or not at all, in folders that no link leads out of.

A file is written under a temporary name, flushed to the disk and renamed; then its folder is
flushed, so that the name survives a power cut as well. Inside a run's folder every part of a name
is opened on its own, by the descriptor of the folder before it: a symbolic link is an error there,
and so is whatever is no regular file (a pipe, a device).
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from hopscope.errors import RunDamaged, RunUnreadable, StoreUnwritable

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
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe without a writer would block


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the system's refusals into one line about the path."""
    try:
        yield
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StoreUnwritable(f"cannot write {path}: {reason}") from error


def meant(path: Path) -> Path:
    """The file that is to be written, by the name that was given: a link stands for its target."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file atomically; whatever goes wrong, the old one is intact."""
    with writing(path):
        path = meant(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    write_inside(path.parent, path.name, data)
    with writing(path):
        flush_folder(path.parent)


def write_inside(root: Path, name: str, data: bytes) -> None:
    """Replace the file `name` below a folder; its name is flushed by `flush_inside`."""
    inner, own = _split(name)
    with writing(root / name), opened(root, inner, make=True) as folder:
        _check_replaceable(root / name, own, folder)
        temporary = f".{own}.{os.getpid()}.tmp"
        with suppress(FileNotFoundError):  # of a killed process that had our number
            os.unlink(temporary, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
        try:
            with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, own, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):  # the error that matters is the first one
                os.unlink(temporary, dir_fd=folder)
            raise


def flush_inside(root: Path, names: set[str]) -> None:
    """Make the names of these files survive a power cut, and those of their folders."""
    inner = {_split(name)[0] for name in names}
    for folder in (*sorted(inner - {""}), ""):
        with writing(root / folder), opened(root, folder) as descriptor:
            os.fsync(descriptor)


def rename_inside(root: Path, name: str, new: str) -> None:
    """Rename a file below a folder within its own folder, over what has that name."""
    (inner, own), (_, other) = _split(name), _split(new)
    with writing(root / new), opened(root, inner) as folder:
        os.replace(own, other, src_dir_fd=folder, dst_dir_fd=folder)


def remove_inside(root: Path, name: str) -> None:
    """Remove the file `name` below a folder, if it is there."""
    inner, own = _split(name)
    with writing(root / name), suppress(FileNotFoundError), opened(root, inner) as folder:
        os.unlink(own, dir_fd=folder)


def read_inside(root: Path, name: str, most: int, size: int | None = None) -> bytes:
    """The content of the file `name` below a folder; another `size`, or more than `most` bytes, is
    a RunDamaged.
    """
    path, (inner, own) = root / name, _split(name)
    with _reading(path), opened(root, inner) as folder:
        descriptor = os.open(own, os.O_RDONLY | NO_LINK, dir_fd=folder)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise RunDamaged(f"{path} is damaged (no regular file)")
            if size is not None and found.st_size != size:
                raise RunDamaged(f"{path} is damaged ({found.st_size} bytes, expected {size})")
            if found.st_size > most:
                raise RunDamaged(
                    f"{path} is damaged ({found.st_size:,} bytes, expected at most {most:,})"
                )
            return file.read()


def read_bytes(path: Path) -> bytes:
    """The content of a file that somebody named; a missing or unreadable one is a RunDamaged."""
    with _reading(path):
        return path.read_bytes()


@contextmanager
def opened(root: Path, inner: str = "", make: bool = False) -> Iterator[int]:
    """A descriptor of the folder `inner` below `root`; below it no link is followed."""
    descriptor = os.open(root, FOLDER)
    try:
        for part in PurePosixPath(inner).parts:
            if make:
                _make_folder(part, descriptor)
            below = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    with opened(folder) as descriptor:
        os.fsync(descriptor)


def sha256(data: bytes) -> str:
    """The SHA-256 of these bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _split(name: str) -> tuple[str, str]:
    """The folder of a file, and what the file is called in it."""
    inner, _, own = name.rpartition("/")
    return inner, own


def _check_replaceable(path: Path, own: str, folder: int) -> None:
    """Refuse to put a file in the place of a pipe or a device: others read from it."""
    with suppress(FileNotFoundError):
        mode = os.stat(own, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
            raise StoreUnwritable(
                f"cannot write {path}: it is a pipe or a device: choose another file"
            )


def _make_folder(part: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(part, dir_fd=parent)
        os.fsync(parent)


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
