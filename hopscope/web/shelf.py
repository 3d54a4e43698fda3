"""What runs there are, by id, and which of them changed since somebody asked; nothing is opened.

A run's id is the hash at the end of its name (`gallery-NAME` for those that come with hopscope).
It is looked up among the runs that were found, and never made into a path.
"""

import hashlib
import operator
import os
import re
import secrets
import time
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any

from hopscope.errors import RunDamaged, RunMissing, StoreError
from hopscope.store import Listed, RunFolder, Store, gallery
from hopscope.store.folder import GALLERY
from hopscope.store.listing import committed, listed
from hopscope.store.lock import holder_of
from hopscope.store.manifest import MANIFEST

HASH = re.compile(r"(?:.*-)?([0-9a-f]{10})", re.ASCII | re.DOTALL)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What a run's folder may be called here: its name stands in commands that are copied."""
Signature = tuple[int, ...]
MOMENT = 0.2
"""Seconds for which one call looks at runs that nobody looked at yet."""


@dataclass(frozen=True)
class Entry:
    """One run on the shelf."""

    path: Path
    run: Listed
    row: dict[str, Any]
    version: int
    """The count of changes when this row was new."""


class Shelf:
    """The runs of a store and of the gallery."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.problems: list[str] = []
        self.more = False
        """Are there runs that nobody looked at yet?"""
        self._found: list[Listed] | None = None
        self._nonce, self._version = secrets.token_hex(4), 0
        self._seen: dict[Path, tuple[Signature, tuple[str, ...], Listed]] = {}
        self._entries: dict[str, Entry] = {}
        self._gone: dict[str, int] = {}
        self._gallery = [_of_gallery(name) for name in gallery.names()]
        self._lock = RLock()

    def since(self, cursor: str = "") -> dict[str, Any]:
        """The rows that changed since this cursor was given out, and a new cursor."""
        with self._lock:
            self.look()
            nonce, _, number = cursor.partition(".")
            known = int(number) if nonce == self._nonce and number.isdecimal() else -1
            rows = [entry.row for entry in self._entries.values() if entry.version > known]
            gone = [id_ for id_, version in self._gone.items() if version > known >= 0]
            return {
                "cursor": f"{self._nonce}.{self._version}",
                "rows": rows,
                "gone": gone,
                "more": self.more,
                "problems": self.problems,
            }

    def find(self, id_: str) -> Entry:
        """The run of this id, as it is now."""
        with self._lock:
            entry = self._entries.get(id_)
            if entry is None or self._changed(entry):
                self.look()
                while self.more and id_ not in self._entries:
                    self.look()
                entry = self._entries.get(id_)
        if entry is None:
            gone = " any more: it was removed" if id_ in self._gone else ""
            raise RunMissing(f"there is no run {id_[:80]!r}{gone}; `hopscope runs` lists the runs")
        return entry

    def id_of(self, name: str) -> str:
        """The id of the run of this name. That of a copy is certain only once all runs were looked
        at: its original may still come and take it.
        """
        with self._lock:
            self.look()
            entry = self._called(name)
            while self.more and (entry is None or not _under_own_name(entry.run)):
                self.look()
                entry = self._called(name)
        if entry is None:
            raise RunMissing(
                f"there is no run {name!r} any more: it was removed; `hopscope runs` lists the runs"
            )
        id_: str = entry.row["id"]
        return id_

    def folder(self, id_: str) -> RunFolder:
        """The folder of the run of this id; one that is damaged says so."""
        entry = self.find(id_)
        if problem := misnamed(entry.path):
            raise RunDamaged(problem)
        return entry.run.folder or RunFolder(entry.path)

    def look(self) -> None:
        """Look at every run that changed since the last look; of those that nobody looked at yet,
        at the newest, for a moment (at one at least). Others follow at the next look.
        """
        names = self.store.names()
        until = time.monotonic() + MOMENT
        for name in reversed(names):
            if self.store.root / name not in self._seen:
                self._look(self.store.root / name, ())
                if time.monotonic() > until:
                    break
        known = [name for name in names if self.store.root / name in self._seen]
        self.more = len(known) < len(names)
        found, self.problems = self.store.listed(self._look, known)
        last = self._found
        if last is not None and len(found) == len(last) and all(map(operator.is_, found, last)):
            return  # nothing changed
        self._found = found
        paths = [self.store.root / run.name for run in found]
        self._seen = {path: self._seen[path] for path in paths}
        runs = [*zip((gallery.ROOT / run.name.removeprefix(GALLERY) for run in self._gallery),
                     self._gallery, strict=True), *zip(paths, found, strict=True)]  # fmt: skip
        rows = {id_: (path, run, row_of(id_, run, path)) for id_, path, run in _named(runs)}
        now = self._version + 1
        entries, changed = {}, False
        for id_, (path, run, row) in rows.items():
            before = self._entries.get(id_)
            same = before is not None and before.row == row
            entries[id_] = Entry(path, run, row, before.version if same and before else now)
            changed = changed or not same
        gone = self._entries.keys() - entries.keys()
        self._gone = {i: v for i, v in self._gone.items() if i not in entries}
        self._gone |= dict.fromkeys(gone, now)
        self._entries = entries
        if changed or gone:
            self._version = now

    def _look(self, path: Path, tags: tuple[str, ...]) -> Listed:
        """One run, looked at anew only if it changed."""
        seen = self._seen.get(path)
        now = signature(path, seen is None or seen[2].state != "complete")
        if seen is not None and seen[:2] == (now, tags):
            return seen[2]
        same = seen is not None and seen[0] == now
        found = replace(seen[2], tags=tags) if same and seen else _listed(path, tags)
        self._seen[path] = (now, tags, found)
        return found

    def _called(self, name: str) -> Entry | None:
        """The run of this name, if it was looked at."""
        return next((each for each in self._entries.values() if each.run.name == name), None)

    def _changed(self, entry: Entry) -> bool:
        """Is it another run than it was, or none?"""
        seen = self._seen.get(entry.path)
        return seen is not None and seen[0] != signature(entry.path, entry.run.state != "complete")


def _listed(path: Path, tags: tuple[str, ...]) -> Listed:
    """One run of a store; damaged where its name may not stand in a command."""
    found, problem = listed(path, tags), misnamed(path)
    return replace(found, state="damaged", folder=None, problem=problem) if problem else found


def misnamed(path: Path) -> str:
    """What is wrong with the name of a run's folder, in one line; empty: nothing."""
    if NAME.fullmatch(path.name):
        return ""
    name = ascii(path.name[:60])
    return f"a run's folder is called {name}; expected letters, digits, '.', '_', '-': rename it"


def signature(path: Path, asked: bool) -> Signature:
    """What changes with every commit to a run, and (if asked) with who trains it."""
    try:
        stat = os.lstat(f"{path}{os.sep}{MANIFEST}")
    except OSError:
        return ()
    trained = asked and holder_of(path) is not None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, int(trained)


def row_of(id_: str, run: Listed, path: Path) -> dict[str, Any]:
    """A run as a row of the page's table."""
    date = run.date.timestamp() if run.date else 0.0
    row = {"id": id_, **run.to_dict(), "told": run.status, "revision": f"{date:.6f}"}
    row["problem"] = run.problem.replace(f"{path.parent}{os.sep}", "")
    if run.folder is None:
        return row
    recipe = run.folder.recipe
    about = gallery.about(run.folder) if run.folder.gallery else None
    return row | {
        "kind": recipe.kind,
        "task": recipe.task_kind,
        **recipe.shape(),
        "seeds": len(recipe.seeds),
        "unit": recipe.unit,
        "what": about.what if about else "",
    }


def _of_gallery(name: str) -> Listed:
    """A model that comes with hopscope."""
    path = gallery.ROOT / name
    try:
        folder = gallery.find(name)
    except StoreError as error:
        return Listed(GALLERY + name, "damaged", committed(path), 0, problem=str(error))
    size = sum(entry.size for entry in folder.manifest.files.values())
    return Listed(GALLERY + name, "complete", committed(path), size, (), folder)


def _named(runs: list[tuple[Path, Listed]]) -> list[tuple[str, Path, Listed]]:
    """Every run with an id of its own: the hash in its name, if it is under its own name."""
    found: dict[str, tuple[Path, Listed]] = {}
    own = [each for each in runs if _under_own_name(each[1])]
    others = [each for each in runs if not _under_own_name(each[1])]
    for path, run in (*own, *others):
        match = HASH.fullmatch(run.name)
        id_ = match[1] if match else ""
        if run.name.startswith(GALLERY):
            id_ = run.name.replace("/", "-")
        if not id_ or id_ in found:
            id_ = hashlib.sha256(os.fsencode(run.name)).hexdigest()[:12]
        found[id_] = (path, run)
    return [(id_, path, run) for id_, (path, run) in found.items()]


def _under_own_name(run: Listed) -> bool:
    return run.folder is not None and (
        run.folder.gallery or run.folder.manifest.name == run.folder.name
    )
