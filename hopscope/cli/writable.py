"""Can it be written? Asked before anything is computed for it; nothing is made or changed here."""

import errno
import os
from pathlib import Path

from hopscope.errors import ConfigError
from hopscope.report.formats import check_format
from hopscope.store.files import writing


def check_figures(*paths: Path) -> None:
    """Refuse files for figures whose format is unknown, or that cannot be written."""
    for path in paths:
        check_format(path)
    check_files(*paths)


def check_files(*paths: Path) -> None:
    """Refuse files that cannot be written: a folder, or in one that takes none."""
    for path in paths:
        with writing(path):
            if path.is_dir():
                raise ConfigError(f"{path} is a folder; expected a file")
            if path.exists() and not os.access(path, os.W_OK):
                raise OSError(_why_not(path), "")
            check_folder(path.parent)


def check_folder(path: Path) -> None:
    """Refuse a folder that can neither be written to nor made."""
    with writing(path):
        there = path
        while not there.exists() and there != there.parent:
            there = there.parent
        if not there.is_dir():
            raise OSError(errno.ENOTDIR, "")
        if not os.access(there, os.W_OK | os.X_OK):
            raise OSError(_why_not(there), "")


def _why_not(path: Path) -> int:
    """Is the whole file system read-only, or is it a matter of permissions?"""
    frozen = os.statvfs(path).f_flag & os.ST_RDONLY
    return errno.EROFS if frozen else errno.EACCES
