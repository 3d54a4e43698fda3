"""What a power cut may leave of a folder, worked out from the log of the calls that changed it.

A file's content survives if it was flushed (fsync) after it was written, and a name if the folder
that holds it was flushed after the name was made, moved or removed. What was not flushed may be
there, or half of it, or nothing; POSIX promises no more. Of each moment these states are made:

    strict   nothing that was not flushed
    torn     the names that were flushed, and of files that were not flushed half
    names    all names, and nothing of files that were not flushed
    newest   of each folder the newest name, of those that were not flushed
    mixed    any of it, by chance: each name old or new, each file whole, half or empty
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from system_calls import CHANGES, Call

State = dict[str, bytes | None]
"""Path → content, None for a folder."""
MODES = ("strict", "torn", "names", "newest", "mixed")


@dataclass
class File:
    """A file's content as written, and as flushed."""

    now: bytearray = field(default_factory=bytearray)
    flushed: bytes = b""


@dataclass
class Folder:
    """Names as they are, and as flushed; and every change since, each a few names at once."""

    now: dict[str, "File | Folder"] = field(default_factory=dict)
    flushed: dict[str, "File | Folder"] = field(default_factory=dict)
    pending: list[dict[str, "File | Folder | None"]] = field(default_factory=list)

    def change(self, names: "dict[str, File | Folder | None]") -> None:
        self.pending.append(names)
        _apply(self.now, names)

    def flush(self) -> None:
        self.flushed, self.pending = dict(self.now), []


def _apply(names: "dict[str, File | Folder]", change: "dict[str, File | Folder | None]") -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    """A folder that follows a log of calls."""

    def __init__(self, root: Path) -> None:
        """As it is now, all of it flushed."""
        self.root = root
        self.top = _read(root)

    def follow(self, call: Call) -> None:
        """Do what the call did."""
        if call.op in CHANGES:
            getattr(self, f"_{call.op}")(call)

    def _node(self, path: str) -> "File | Folder":
        node: File | Folder = self.top
        for part in Path(path).relative_to(self.root).parts:
            assert isinstance(node, Folder)
            node = node.now[part]
        return node

    def _at(self, path: str) -> tuple[Folder, str]:
        parent = self._node(str(Path(path).parent))
        assert isinstance(parent, Folder)
        return parent, Path(path).name

    def _create(self, call: Call) -> None:
        folder, name = self._at(call.other)
        folder.change({name: File()})

    def _truncate(self, call: Call) -> None:
        file = self._node(call.other)
        assert isinstance(file, File)
        file.now = bytearray()

    def _resize(self, call: Call) -> None:
        file = self._node(call.path)
        assert isinstance(file, File)
        file.now = bytearray(bytes(file.now[: call.flags]).ljust(call.flags, b"\0"))

    def _write(self, call: Call) -> None:
        file = self._node(call.path)
        assert isinstance(file, File)
        gap = call.offset - len(file.now)
        file.now.extend(bytes(max(0, gap)))
        file.now[call.offset : call.offset + len(call.data)] = call.data

    def _fsync(self, call: Call) -> None:
        node = self._node(call.path)
        if isinstance(node, Folder):
            node.flush()
        else:
            node.flushed = bytes(node.now)

    def _rename(self, call: Call) -> None:
        (old, was), (new, becomes) = self._at(call.path), self._at(call.other)
        node = old.now[was]
        if old is new:  # within one folder a rename is there whole or not at all
            old.change({was: None, becomes: node})
        else:
            new.change({becomes: node})
            old.change({was: None})

    def _link(self, call: Call) -> None:
        folder, name = self._at(call.other)
        folder.change({name: self._node(call.path)})

    def _mkdir(self, call: Call) -> None:
        folder, name = self._at(call.path)
        folder.change({name: Folder()})

    def _unlink(self, call: Call) -> None:
        folder, name = self._at(call.path)
        folder.change({name: None})

    _rmdir = _unlink

    def after_cut(self, mode: str, seed: int = 0) -> State:
        """What the mode leaves."""
        found: State = {}
        _leave(self.top, "", mode, random.Random(seed), found)
        return found

    def content(self, path: str) -> bytes:
        """A file as it is."""
        file = self._node(path)
        assert isinstance(file, File)
        return bytes(file.now)

    def unflushed(self, folder: str, names: Sequence[str]) -> list[str]:
        """Which of these files of a folder a power cut could take, and why."""
        found = []
        for name in names:
            node: File | Folder = self._node(folder)
            for part in Path(name).parts:
                assert isinstance(node, Folder)
                if part not in node.now:
                    found.append(f"{name} is not there")
                    break
                if node.flushed.get(part) is not node.now[part]:
                    found.append(f"{name}: the folder that holds {part} was not flushed")
                    break
                node = node.now[part]
            if isinstance(node, File) and node.flushed != bytes(node.now):
                found.append(f"{name}: its content was not flushed")
        return found


def _read(folder: Path) -> Folder:
    found = Folder()
    for path in folder.iterdir():
        if path.is_dir():
            found.now[path.name] = _read(path)
        else:
            data = path.read_bytes()
            found.now[path.name] = File(bytearray(data), data)
    found.flush()
    return found


def _leave(folder: Folder, at: str, mode: str, chance: random.Random, found: State) -> None:
    names = dict(folder.now if mode == "names" else folder.flushed)
    if mode == "mixed":
        for change in folder.pending:
            if chance.random() < 0.5:
                _apply(names, change)
    if mode == "newest" and folder.pending:
        _apply(names, folder.pending[-1])
    for name, node in names.items():
        path = f"{at}{name}"
        if isinstance(node, Folder):
            found[path] = None
            _leave(node, f"{path}/", mode, chance, found)
        else:
            found[path] = _content(node, mode, chance)


def _content(file: File, mode: str, chance: random.Random) -> bytes:
    now = bytes(file.now)
    half = now[: len(now) // 2]
    if now == file.flushed:
        return now
    if mode == "mixed":
        return chance.choice([file.flushed, now, half])
    return half if mode == "torn" else file.flushed


def write(state: State, root: Path) -> None:
    """Make the folder what the state says."""
    root.mkdir(exist_ok=True)
    for path, content in state.items():
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)


def states(root: Path, calls: Sequence[Call], draws: int = 2) -> Iterator[tuple[str, State]]:
    """Every state, once, that a cut between two calls may leave; the folder is as it was before
    the calls.
    """
    disk, seen = Disk(root), set()
    for number in range(len(calls) + 1):
        if number:
            disk.follow(calls[number - 1])
            if calls[number - 1].op not in CHANGES:
                continue
        for mode in MODES:
            for draw in range(draws if mode == "mixed" else 1):
                state = disk.after_cut(mode, number * 1_000 + draw)
                key = hash(frozenset(state.items()))
                if key not in seen:
                    seen.add(key)
                    yield f"{mode} {draw} after call {number}", state
