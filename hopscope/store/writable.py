"""Can it be written? Asked before anything is computed for it; nothing is made or changed here."""

import errno
import os
from pathlib import Path

from hopscope.errors import ConfigError
from hopscope.store.files import meant, writing


def check_files(*paths: Path | None) -> None:
    """Refuse files that cannot be written: a folder, a pipe or a device, or in a folder that takes
    none. None is a file that is not asked for.
    """
    for path in filter(None, paths):
        with writing(path):
            if path.is_dir():
                raise ConfigError(f"{path} is a folder; expected a file")
            if path.exists():
                if not path.is_file():
                    raise ConfigError(f"{path} is a pipe or a device; expected a file")
                _try(path)
            _try_folder(meant(path).parent)


def check_folder(path: Path) -> None:
    """Refuse a folder that can neither be written to nor made."""
    with writing(path):
        _try_folder(path)


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
