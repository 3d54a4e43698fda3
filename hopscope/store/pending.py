"""Files that replace committed ones: they wait under names of their own for their manifest.

A commit writes them beside the old ones, then the manifest, and then moves them to their places. So
whoever reads finds what his manifest names, at one place or the other, wherever the commit was cut
off. The name is that of a temporary file, with a number that the content determines.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from hopscope.store.files import flush_inside, rename_inside
from hopscope.store.manifest import FileEntry


def pending(name: str, entry: FileEntry) -> str:
    """What a file is called until it takes its place."""
    inner, slash, own = name.rpartition("/")
    return f"{inner}{slash}.{own}.{int(entry.sha256[:8], 16)}.tmp"


def places(name: str, entry: FileEntry) -> tuple[str, str, str]:
    """Where a committed file may be; its place comes again, as it may just have moved there."""
    return name, pending(name, entry), name


def settle(folder: Path, files: Mapping[str, FileEntry]) -> None:
    """Move files that a manifest names to their places, if they still wait."""
    waiting = {
        name: pending(name, entry)
        for name, entry in files.items()
        if os.path.lexists(folder / pending(name, entry))
    }
    for name, other in waiting.items():
        rename_inside(folder, other, name)
    if waiting:
        flush_inside(folder, set(waiting))
