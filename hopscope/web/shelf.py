"""The list of runs by id, with the changes since a cursor; no model is opened.

A run's id is the hash at the end of its name (`gallery-NAME` for models that come with hopscope).
It is looked up among the runs that were found, and never becomes a path.

The store is not listed again at each request. The time of the store's folder shows when runs were
made or removed, or tags written; the time of a manifest shows when a run was trained further. Each
look checks runs that are in training or were requested recently, and `IN_TURN` others by rotation,
so its cost does not grow with the store. It also reads new runs for `MOMENT` seconds, the newest
first.
"""

import hashlib
import os
import re
import secrets
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from shlex import quote
from threading import RLock
from typing import Any

from hopscope.errors import RunDamaged, RunMissing, StoreError
from hopscope.store import Listed, RunFolder, Store, gallery
from hopscope.store.folder import GALLERY, born
from hopscope.store.listing import committed, listed
from hopscope.store.lock import holder_of
from hopscope.store.manifest import MANIFEST
from hopscope.store.store import named_like_run
from hopscope.store.tags import read_tags

HASH = re.compile(r"(?:.*-)?([0-9a-f]{10})", re.ASCII | re.DOTALL)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Valid names of a run's folder: users copy commands that contain the name."""
Signature = tuple[int, ...]
MOMENT = 0.2
"""Seconds that one look spends reading new runs."""
IN_TURN = 100
"""Number of other runs that each look checks by rotation."""
LATELY = 8
"""Number of recently requested runs that each look checks."""
SETTLED = 2.0
"""A folder's time is trusted only after this many seconds, as some file systems count seconds."""


@dataclass(frozen=True)
class ShelfEntry:
    """One run on the shelf."""

    path: Path
    run: Listed
    row: dict[str, Any]
    version: int
    """The shelf's version when this row last changed."""
    signature: Signature = ()


class Shelf:
    """The runs of a store and of the gallery."""

    def __init__(self, store: Store, first: Sequence[dict[str, Any]] = ()) -> None:
        """`first` are rows of studies, which are listed before all runs."""
        self.store, self._first = store, first
        self._nonce, self._version = secrets.token_hex(4), 0
        self._entries: dict[str, ShelfEntry] = {}
        self._ids: dict[str, str] = {}
        """The ids of the store's runs, by name."""
        self._gone: dict[str, int] = {}
        self._problems: tuple[list[str], int] = ([], 0)
        self._folder: Signature = ()
        self._there = False
        """Whether the store's folder has existed."""
        self._found: set[str] = set()
        """The names of all folders that may be runs of the store."""
        self._unread: dict[str, None] = {}
        """The names that were not read yet, the newest last."""
        self._turn: deque[str] = deque()
        self._lately: deque[str] = deque(maxlen=LATELY)
        self._tags: dict[str, tuple[str, ...]] = {}
        self._lock = RLock()
        for name in gallery.names():
            self._put(gallery.path(name), _of_gallery(name), ())

    def since(self, cursor: str = "") -> dict[str, Any]:
        """Return the rows that changed since this cursor, the ids of removed runs, a new cursor,
        and the problems of the store if these have changed.
        """
        with self._lock:
            self.look()
            nonce, _, number = cursor.partition(".")
            known = int(number) if nonce == self._nonce and number.isdecimal() else -1
            found: dict[str, Any] = {"rows": [], "gone": []}
            if known < self._version:
                changed = (each.row for each in self._entries.values() if each.version > known)
                found["rows"] = [*(self._first if known < 0 else ()), *changed]
                found["gone"] = [id_ for id_, at in self._gone.items() if at > known >= 0]
            problems, since = self._problems
            if since > known:
                found["problems"] = problems
            more = bool(self._unread)
            return {"cursor": f"{self._nonce}.{self._version}", "more": more, **found}

    def find(self, id_: str) -> ShelfEntry:
        """Return the current entry of the run with this id; raises RunMissing."""
        with self._lock:
            if id_ in self._entries:
                self._ask_after(self._entries[id_])
            else:
                self._look_at_folder()
                named = [name for name in self._unread if id_ in (_hash(name), _id_by_name(name))]
                self._read(named)
            entry = self._entries.get(id_)
        if entry is None:
            gone = " any more: it was removed" if id_ in self._gone else ""
            raise RunMissing(f"there is no run {id_[:80]!r}{gone}; `hopscope runs` lists the runs")
        return entry

    def id_of(self, name: str) -> str:
        """Return the id of the run with this name; raises RunMissing."""
        if name.startswith(GALLERY):
            return name.replace("/", "-")
        with self._lock:
            self._look_at_folder()
            self._read([name])
            if name not in self._ids:
                raise RunMissing(
                    f"there is no run {name!r} any more: it was removed; `hopscope runs` lists the "
                    "runs"
                )
            return self._ids[name]

    def folder(self, id_: str) -> RunFolder:
        """Return the folder of the run with this id; raises if it is missing or damaged."""
        entry = self.find(id_)
        if problem := misnamed(entry.path):
            raise RunDamaged(problem)
        return entry.run.folder or RunFolder(entry.path)

    def look(self) -> None:
        """Find changes, and read some of the new runs (at least one)."""
        self._look_at_folder()
        runs = ((each.path.name, each.run.state) for each in self._entries.values())
        training = [name for name, state in runs if state == "in training"]
        self._read({*training, *self._lately, *islice(self._turn, IN_TURN)})
        self._turn.rotate(-IN_TURN)
        until = time.monotonic() + MOMENT
        while self._unread:
            self._read([next(reversed(self._unread))])
            if time.monotonic() > until:
                break

    def _look_at_folder(self) -> None:
        """Find the folders that may be runs, and the tags, if the store's folder has changed."""
        root, problems = self.store.root, list[str]()
        try:
            status = root.stat()
            now = status.st_mtime_ns, status.st_ino, status.st_dev
            if now == self._folder:
                return
            settled = abs(time.time() - status.st_mtime) > SETTLED
            self._folder = now if settled else ()
            with os.scandir(root) as all_:
                found = {each.name for each in all_ if not each.name.startswith(".")}
            self._there = True
        except OSError as error:
            self._folder, found = (), set()
            if self._there or not isinstance(error, FileNotFoundError):
                line = f"the store {root} cannot be read ({error.strerror}): it is looked for again"
                problems.append(line)
        for name in self._found - found:
            self._drop(name)
        new = sorted(found - self._found, key=lambda name: (born(root / name), name))
        self._found = found
        self._unread = dict.fromkeys([*(name for name in self._unread if name in found), *new])
        self._turn = deque(name for name in self._turn if name in found)
        try:
            self._retag(read_tags(root))
        except StoreError as error:
            self._retag({})
            problems.append(str(error))
        if problems != self._problems[0]:
            self._version += 1
            self._problems = problems, self._version

    def _retag(self, tags: dict[str, tuple[str, ...]]) -> None:
        """Update the rows of runs whose tags have changed."""
        was, self._tags = self._tags, tags
        for name in was.keys() | tags.keys():
            if was.get(name) != tags.get(name) and name in self._ids:
                entry = self._entries[self._ids[name]]
                run = replace(entry.run, tags=tags.get(name, ()))
                self._put(entry.path, run, entry.signature)

    def _read(self, names: Iterable[str]) -> None:
        """Read those of these runs that are new or have changed."""
        for name in names:
            if name not in self._found:
                continue
            if name in self._unread:
                del self._unread[name]
                self._turn.append(name)
            path = self.store.root / name
            entry = self._entries.get(self._ids.get(name, ""))
            now = signature(path, entry is None or entry.run.state != "complete")
            if entry is not None and entry.signature == now:
                continue
            try:
                run = _listed(path, self._tags.get(name, ())) if now else None
            except RunMissing:
                run = None
            if run is None:
                self._drop(name)
            else:
                self._put(path, run, now)

    def _ask_after(self, entry: ShelfEntry) -> None:
        """Read a requested run again if it has changed, and check it in later looks."""
        if entry.path.parent == self.store.root:
            if entry.path.name not in self._lately:
                self._lately.append(entry.path.name)
            self._look_at_folder()
            self._read([entry.path.name])

    def _put(self, path: Path, run: Listed, its: Signature) -> None:
        """Store the entry of a run; its version changes only if its row does."""
        before = self._ids.get(run.name)
        id_ = self._id(path, run)
        if before is not None and before != id_:
            self._drop(run.name)
        other = self._entries.get(id_)
        if other is not None and other.path != path:  # damaged: it gets another id
            self._drop(other.run.name)
            self._unread[other.run.name] = None
        self._ids[run.name] = id_
        row, entry = row_of(id_, run, path), self._entries.get(id_)
        same = entry is not None and entry.row == row
        self._version += not same
        version = entry.version if entry is not None and same else self._version
        self._entries[id_] = ShelfEntry(path, run, row, version, its)
        self._gone.pop(id_, None)

    def _drop(self, name: str) -> None:
        """Remove a run from the shelf."""
        id_ = self._ids.pop(name, None)
        if id_ is not None:
            del self._entries[id_]
            self._version += 1
            self._gone[id_] = self._version

    def _id(self, path: Path, run: Listed) -> str:
        """Return the id of a run: the hash in its name, unless it is a copy under another name."""
        if run.name.startswith(GALLERY):
            return run.name.replace("/", "-")
        if hashed := _hash(run.name):
            other = self._entries.get(hashed)
            free = other is None or other.path == path
            damaged = other is not None and other.run.folder is None
            own = run.folder is not None and run.folder.manifest.name == run.name
            if (free and run.folder is None) or (own and (free or damaged)):
                return hashed
        return _id_by_name(run.name)


def _hash(name: str) -> str:
    """Return the hash at the end of a run's name, or an empty text."""
    match = HASH.fullmatch(name)
    return match[1] if match else ""


def _id_by_name(name: str) -> str:
    """Return the id of a run that is a copy under another name: a hash of the name."""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:12]


def _listed(path: Path, tags: tuple[str, ...]) -> Listed:
    """Return the list entry of a run; it counts as damaged if its name is invalid (`misnamed`)."""
    found, problem = listed(path, tags), misnamed(path)
    return replace(found, state="damaged", folder=None, problem=problem) if problem else found


def misnamed(path: Path) -> str:
    """Return a line on an invalid name of a run's folder; empty if the name is valid."""
    if NAME.fullmatch(path.name):
        return ""
    name = ascii(path.name[:60])
    return f"a run's folder is called {name}; expected letters, digits, '.', '_', '-': rename it"


def signature(path: Path, asked: bool) -> Signature:
    """Return a tuple that changes with every commit to a run, and (if `asked`) when training starts
    or stops; empty without a manifest, zeros if it is private to another user.
    """
    try:
        stat = os.lstat(f"{path}{os.sep}{MANIFEST}")
    except PermissionError:
        return (0, 0, 0, 0) if named_like_run(path) else ()
    except OSError:
        return ()
    trained = asked and holder_of(path) is not None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, int(trained)


def without_folder(text: str, folder: Path) -> str:
    """Return a message without the path of this folder and without --store FOLDER."""
    return text.replace(f" --store {quote(str(folder))}", "").replace(f"{folder}{os.sep}", "")


def row_of(id_: str, run: Listed, path: Path) -> dict[str, Any]:
    """Return a run as a row of the page's table."""
    date = run.date.timestamp() if run.date else 0.0
    row = {"id": id_, **run.to_dict(), "revision": f"{date:.6f}"}
    row["problem"] = without_folder(run.problem, path.parent)
    if run.folder is None:
        return row
    recipe = run.folder.recipe
    about = gallery.about(run.folder) if run.folder.gallery else None
    return row | {
        "kind": recipe.kind,
        "task": recipe.task_kind,
        **recipe.shape(),
        "seeds": list(recipe.seeds),
        "unit": recipe.unit,
        "what": about.what if about else "",
    }


def _of_gallery(name: str) -> Listed:
    """Return the list entry of a model that comes with hopscope."""
    path = gallery.path(name)
    try:
        folder = gallery.find(name)
    except StoreError as error:
        return Listed(GALLERY + name, "damaged", committed(path), 0, problem=str(error))
    size = sum(entry.size for entry in folder.manifest.files.values())
    return Listed(GALLERY + name, "complete", committed(path), size, (), folder)
