"""What lies in a run's folder and is in no manifest: what a killed process left, and the rest.

Ours are temporary files, and files in a run's own folders that are named as only hopscope names
them. They may be removed. Everything else somebody put there, and it stays.
"""

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from hopscope.errors import RunDamaged
from hopscope.store.lease import LEASE
from hopscope.store.lock import LOCK
from hopscope.store.manifest import MANIFEST, NAME

FOLDERS = frozenset({"answers", "checkpoints", "explorer", "metrics", "parameters", "rows"})
"""A run's own folders. Kinds of run that others add may have more: a folder is the run's own, too,
once its manifest names a file in it."""
TEMPORARY = re.compile(r"\.(.+)\.\d{1,10}\.tmp", re.ASCII)


@dataclass(frozen=True)
class Strays:
    """Names of files, relative to the run's folder, that its manifest does not name."""

    leftovers: tuple[str, ...]
    foreign: tuple[str, ...]


def strays(folder: Path, named: Collection[str]) -> Strays:
    """All that is in the folder beside the files that are named."""
    ours: list[str] = []
    foreign: list[str] = []
    own = FOLDERS | {name.rpartition("/")[0] for name in named}
    for name, regular in all_in(folder):
        if name not in named and name not in (MANIFEST, LOCK, LEASE):
            (ours if regular and _is_ours(name, own) else foreign).append(name)
    return Strays(tuple(sorted(ours)), tuple(sorted(foreign)))


def all_in(folder: Path) -> list[tuple[str, bool]]:
    """Every file below the folder, and whether it is a regular one; a link is not followed."""
    found, open_, start = [], [str(folder)], len(str(folder / "x")) - 1
    try:
        while open_:
            inner = open_.pop()
            for entry in os.scandir(inner):
                if entry.is_dir(follow_symlinks=False):
                    open_.append(entry.path)
                else:
                    found.append((entry.path[start:], entry.is_file(follow_symlinks=False)))
    except OSError as error:
        raise RunDamaged(f"cannot read {inner}: {error.strerror}") from error
    return found


def _is_ours(name: str, folders: Collection[str]) -> bool:
    inner, _, own = name.rpartition("/")
    if inner and inner not in folders:
        return False
    final = own
    while temporary := TEMPORARY.fullmatch(final):  # that of a file that waits has two numbers
        final = temporary[1]
    path = f"{inner}/{final}" if inner else final
    known = NAME.fullmatch(path) is not None or path == LEASE
    # A .json beside the manifest may be anybody's.
    return known and bool(inner or final != own)
