"""The calls that change files below a folder: written down, spoiled, and what a power cut leaves.

A file's content survives a power cut if it was flushed (fsync) after it was written, and a name if
the folder that holds it was flushed after the name was made, moved or removed. What was not flushed
may be there, or not; POSIX promises no more.

Python's calls are watched: `test_crashes.py` holds what they say against the folder, so that a
change that goes another way does not go unseen.
"""

import errno
import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

NAMES = ("open", "mkdir", "fsync", "replace", "rename", "unlink", "rmdir")
SPACE = ("open", "mkdir", "fsync", "replace", "rename")
"""Calls that a full disk refuses: of `fsync` the write before it."""
FAULTS = ("kill before", "kill half", "kill after", "disk full", "I/O error")


@dataclass(frozen=True)
class Call:
    """A call that changed something."""

    name: str
    path: str
    other: str = ""
    content: bytes | None = None
    """What a file held when it was flushed."""


@dataclass
class Watch:
    """In a process that ends soon: writes down the calls below a folder, and spoils one of them."""

    root: Path
    log: Path | None = None
    number: int = 0
    """Of the call that is spoiled, counted from 1."""
    fault: str = ""
    count: int = 0

    def begin(self) -> None:
        for name in NAMES:
            setattr(os, name, self.instead(name, getattr(os, name)))

    def instead(self, name: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            call = self.call(name, given, named)
            if call is None:
                return own(*given, **named)
            self.count += 1
            place = self.count
            self.spoil(place, call)
            found = own(*given, **named)
            if self.fault == "kill after" and place == self.number:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.log is not None:
                with self.log.open("ab") as file:
                    pickle.dump((place, call), file)
            return found

        return called

    def call(self, name: str, given: Any, named: Any) -> Call | None:
        """What the call changes; None if nothing below the folder."""
        path = _path(given[0], named.get("src_dir_fd", named.get("dir_fd")))
        if not path.is_relative_to(self.root):
            return None
        if name == "open" and (not given[1] & os.O_CREAT or os.path.lexists(path)):
            return None
        if name in ("replace", "rename"):
            return Call(name, str(path), str(_path(given[1], named.get("dst_dir_fd"))))
        return Call(name, str(path), "", path.read_bytes() if path.is_file() else None)

    def spoil(self, place: int, call: Call) -> None:
        """Fail, or die, before the call."""
        if self.fault == "disk full" and place >= self.number and call.name in SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if place != self.number:
            return
        if self.fault == "I/O error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.fault == "kill half" and call.name == "fsync" and call.content:
            os.truncate(call.path, len(call.content) // 2)
        if self.fault in ("kill before", "kill half"):
            os.kill(os.getpid(), signal.SIGKILL)


def _path(given: Any, folder: int | None) -> Path:
    """The absolute name, by a descriptor or in the folder that a descriptor is of."""
    if isinstance(given, int):
        return Path(f"/proc/self/fd/{given}").readlink()
    start = Path.cwd() if folder is None else Path(f"/proc/self/fd/{folder}").readlink()
    return start / given


def read_log(log: Path) -> list[tuple[int, Call]]:
    """The calls that succeeded, with their numbers."""
    calls = []
    with log.open("rb") as file:
        while file.peek(1):
            calls.append(pickle.load(file))
    return calls


@dataclass
class Node:
    """A file's content, or a folder's names, as they are and as they were flushed."""

    folder: bool
    now: Any
    flushed: Any
    changes: list[dict[str, "Node | None"]] = field(default_factory=list)
    """Of a folder: what was not flushed, each a few names at once."""

    def change(self, names: dict[str, "Node | None"]) -> None:
        self.changes.append(names)
        _apply(self.now, names)


def _apply(names: dict[str, Node], change: dict[str, Node | None]) -> None:
    for name, node in change.items():
        names.pop(name, None)
        if node is not None:
            names[name] = node


class Disk:
    """A folder that follows calls. At first all of it is flushed."""

    def __init__(self, root: Path) -> None:
        self.root, self.top = root, _read(root)

    def _in(self, path: str) -> tuple[Node, str]:
        *above, name = Path(path).relative_to(self.root).parts
        node = self.top
        for part in above:
            node = node.now[part]
        return node, name

    def follow(self, call: Call) -> None:
        """Do what the call did."""
        if call.path == str(self.root):
            node = self.top
        else:
            parent, name = self._in(call.path)
            node = parent.now.get(name, Node(False, b"", b""))
        if call.name == "fsync":
            node.now = node.now if call.content is None else call.content
            node.flushed, node.changes = dict(node.now) if node.folder else node.now, []
        elif call.name == "open":
            parent.change({name: node})
        elif call.name == "mkdir":
            parent.change({name: Node(True, {}, {})})
        elif call.name in ("replace", "rename"):
            new, other = self._in(call.other)
            if new is parent:  # within one folder a rename is there whole or not at all
                parent.change({name: None, other: node})
            else:
                new.change({other: node})
                parent.change({name: None})
        else:
            parent.change({name: None})

    def content(self) -> dict[str, bytes]:
        """Every file as it is."""
        found: dict[str, bytes] = {}
        _leave(self.top, "", lambda node: (node.now, node.now), found)
        return found

    def cut(self, folder: Path, chance: Random | None = None) -> None:
        """Write what a power cut leaves: nothing that was not flushed, or any of it, by chance."""

        def left(node: Node) -> tuple[Any, Any]:
            if chance is None:
                return node.flushed, node.flushed
            if not node.folder:
                half = node.now[: len(node.now) // 2]
                same = node.now == node.flushed
                return None, node.now if same else chance.choice([node.flushed, node.now, half])
            names = dict(node.flushed)
            for change in node.changes:
                if chance.random() < 0.5:
                    _apply(names, change)
            return names, None

        found: dict[str, bytes] = {}
        folders = _leave(self.top, "", left, found)
        for name in folders:
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, content in found.items():
            (folder / name).write_bytes(content)


def _read(folder: Path) -> Node:
    names = {}
    for path in folder.iterdir():
        data = b"" if path.is_dir() else path.read_bytes()
        names[path.name] = _read(path) if path.is_dir() else Node(False, data, data)
    return Node(True, names, dict(names))


def _leave(
    node: Node, at: str, left: Callable[[Node], tuple[Any, Any]], found: dict[str, bytes]
) -> list[str]:
    """The files of a folder go to `found`; the names of its folders are returned."""
    folders = [at]
    for name, below in left(node)[0].items():
        if below.folder:
            folders += _leave(below, f"{at}{name}/", left, found)
        else:
            found[at + name] = left(below)[1]
    return folders
