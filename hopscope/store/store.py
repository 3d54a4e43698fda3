"""All runs of one folder (`runs/` by default, or $HOPSCOPE_STORE)."""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from hopscope.configs import Recipe
from hopscope.display import Displayed
from hopscope.errors import ConfigError, RunMismatch, RunMissing, StoreError
from hopscope.names import alike
from hopscope.store import gallery
from hopscope.store.files import flush_folder, write_inside, writing
from hopscope.store.folder import (
    CONFIG,
    GALLERY,
    REMOVED,
    RunFolder,
    born,
    default_root,
    discard,
    in_store,
)
from hopscope.store.listing import Listed, listed
from hopscope.store.lock import locked
from hopscope.store.manifest import MANIFEST, FileEntry, Manifest
from hopscope.store.query import SqlQuery, read_runs
from hopscope.store.tables import pattern
from hopscope.store.tags import check_tag, read_tags, write_tags

MakeListed = Callable[[Path, tuple[str, ...]], Listed]
"""A function that makes the list entry of a run from its folder and its tags."""
HASH = re.compile(r"[0-9a-f]{10}")
"""The hash at the end of a run's name."""
NEW = ".new-"
"""Prefix of a run's folder while it is created."""
PATIENCE = 60.0
"""Seconds to wait for another process that makes or removes a run."""
NEAREST = 5
"""Largest number of names that a message lists."""


class Store(Displayed):
    """A folder of runs: finds, creates, tags and removes them."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = default_root() if root is None else Path(root)

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def create(self, recipe: Recipe, beside: Mapping[str, bytes] | None = None) -> RunFolder:
        """Return the run of this recipe; create it with the files in `beside` if there is none."""
        path = self.root / recipe.run_name()
        if not _has_manifest(path):
            files = {CONFIG: recipe.written(), **(beside or {})}
            entries = {name: FileEntry.of(data) for name, data in files.items()}
            self._make(path, files, Manifest(name=recipe.run_name(), files=entries))
        return _open(recipe, path)

    def copy(self, folder: RunFolder, name: str) -> RunFolder:
        """Copy a run into this store under a new name; return the copy."""
        if not name or name != Path(name).name or name.startswith("."):
            raise ConfigError(f"{name!r} cannot name a run: expected one folder's name")
        path = self.root / name
        if _has_manifest(path):
            remedy = in_store(self.root, "rm", name)
            raise RunMismatch(f"{path} is there already: `{remedy}` removes it")
        files = {file: folder.read(file) for file in folder.manifest.files}
        self._make(path, files, folder.manifest.copied())
        return RunFolder(path)

    def has_complete(self, recipe: Recipe) -> bool:
        """Return whether there is a complete run of this recipe."""
        found = self.of(recipe)
        return found is not None and found.manifest.complete

    def of(self, recipe: Recipe) -> RunFolder | None:
        """Return the run of this recipe, or None; nothing is created."""
        path = self.root / recipe.run_name()
        return _open(recipe, path) if _has_manifest(path) else None

    def find(self, name: str, beside: str = "") -> RunFolder:
        """Return the run with this name, else with this tag, else the one whose name contains it.

        `gallery/NAME` is a model that comes with hopscope. The run called `beside` is left out.
        Raises RunMissing unless exactly one run matches.
        """
        if not isinstance(name, str):
            raise ConfigError(
                f"a run is named by text, as 'gallery/demo'; got {type(name).__name__}"
            )
        if name.startswith(GALLERY):
            return gallery.find(name)
        names = [each for each in self.names() if each != beside]
        matches = [name] if name in names else self._tagged(name, names)
        matches = matches or [each for each in names if name and name in each]
        if not matches and name and name in beside:
            raise ConfigError(
                f"{beside} is the run of this same recipe: to continue from it, change the recipe "
                "(e.g. training.steps)"
            )
        if len(matches) != 1:
            problem = f"{len(matches)} runs match" if matches else "no run matches"
            kind = "They are" if matches else "There are"
            also = f"; or {GALLERY}{name}, which comes with hopscope"
            raise RunMissing(
                f"{problem} {name!r} in {self.root}. {kind}: {_nearest(name, matches or names)}"
                f"{also if name in gallery.names() else ''}"
            )
        return RunFolder(self.root / matches[0])

    def removable(self, name: str) -> str:
        """Return the name of the one run with this name, tag or hash; raises RunMissing otherwise.

        Unlike `find` it takes no part of a name, which could match a wrong run.
        """
        if name.startswith(GALLERY):
            gallery.find(name).check_writable()
        names = self.names()
        is_hash = HASH.fullmatch(name)
        found = [each for each in names if each == name or (is_hash and each.endswith(f"-{name}"))]
        found = found or self._tagged(name, names)
        if len(found) != 1:
            many = f"{len(found)} runs in {self.root} are" if found else f"no run in {self.root} is"
            raise RunMissing(
                f"{many} named {name!r}; rm needs a whole name, hash or tag of one run. There are: "
                f"{_nearest(name, found or names)}"
            )
        return found[0]

    def remove(self, name: str) -> Path:
        """Remove a run, by its whole name, hash or tag, even if it is unreadable."""
        path = self.root / self.removable(name)
        with self._changing():
            tags = read_tags(self.root)
            try:
                remove = partial(discard, path) if path.is_symlink() else RunFolder(path).remove
            except StoreError:
                remove = partial(discard, path)
            remove()
            if tags.pop(path.name, None):
                write_tags(self.root, tags)
        return path

    def tags(self) -> dict[str, tuple[str, ...]]:
        """Return the tags of each existing run that has any; tags are in alphabetical order."""
        kept = read_tags(self.root)
        return {name: kept[name] for name in self.names() if name in kept}

    def tag(self, name: str, *tags: str) -> tuple[str, ...]:
        """Give a run more tags; returns all of its tags."""
        for tag in tags:
            check_tag(tag)
            if tag in self.names():
                raise ConfigError(f"{tag!r} is the name of a run: choose another word for a tag")
        return self._retag(name, lambda had: {*had, *tags})

    def untag(self, name: str, *tags: str) -> tuple[str, ...]:
        """Take tags from a run; returns those that are left."""
        run = self._own(name)
        had = self.tags().get(run, ())
        if missing := [tag for tag in tags if tag not in had]:
            raise ConfigError(f"{run} has no tag {missing[0]!r}; it has {', '.join(had) or 'none'}")
        return self._retag(run, lambda had: {*had} - {*tags})

    def listed(
        self, look: MakeListed = listed, names: Sequence[str] | None = None
    ) -> tuple[list[Listed], list[str]]:
        """Return the list entries of all runs (or of `names`), oldest first, and all problems.

        `look` makes an entry; a caller may pass a function with a cache.
        """
        problems = self._without_manifest()
        try:
            tags = read_tags(self.root)
        except StoreError as error:
            tags, problems = {}, [*problems, str(error)]
        found = []
        for name in self.names() if names is None else names:
            with suppress(RunMissing):  # removed meanwhile
                found.append(look(self.root / name, tags.get(name, ())))
        return found, [*(run.problem for run in found if run.problem), *problems]

    def sql(self, query: str) -> SqlQuery:
        """Return an SQL query across all runs; `.rows()`, `.df()` and `.arrow()` run it."""
        return SqlQuery(query, self.readable, self.tags)

    def names(self) -> list[str]:
        """The names of the runs, oldest first."""
        runs = ((born(path), path) for path in self._folders() if _has_manifest(path))
        return [os.path.basename(path) for _, path in sorted(runs)]  # noqa: PTH119

    def readable(self) -> tuple[list[RunFolder], list[str]]:
        """All runs that can be read, and one line for each that cannot."""
        runs, problems = read_runs(self.root / name for name in self.names())
        return runs, [*self._without_manifest(), *problems]

    def _without_manifest(self) -> list[str]:
        """One line for each folder with a config but no manifest."""
        return [
            f"{path} has a {CONFIG} and no {MANIFEST}: restore or remove the run"
            for path in sorted(self._folders())
            if not _has_manifest(path) and os.path.lexists(f"{path}{os.sep}{CONFIG}")
        ]

    def _folders(self) -> list[str]:
        """Return the paths of folders that may be runs (as text: there may be thousands)."""
        try:
            return [each.path for each in os.scandir(self.root) if not each.name.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(
                f"cannot read {self.root}: {error.strerror}; expected a folder of runs"
            ) from error

    def _own(self, name: str) -> str:
        """Return the whole name of a run of this store; raises for models of the gallery."""
        folder = self.find(name)
        folder.check_writable()
        return folder.name

    def _tagged(self, tag: str, names: Sequence[str]) -> list[str]:
        """Return the names of the runs among `names` that have this tag."""
        tags = read_tags(self.root)
        return [name for name in names if tag in tags.get(name, ())]

    def _retag(self, name: str, change: Callable[[tuple[str, ...]], set[str]]) -> tuple[str, ...]:
        run = self._own(name)
        with self._changing():
            tags = read_tags(self.root)
            now = tuple(sorted(change(tags.get(run, ()))))
            write_tags(self.root, {**tags, run: now})
        return now

    def _make(self, path: Path, files: Mapping[str, bytes], manifest: Manifest) -> None:
        """Make a run atomically, unless another process has made it."""
        pattern(path.absolute())  # raises for names whose tables DuckDB could not read
        with self._changing():
            if _has_manifest(path):
                return
            new = self.root / f"{NEW}{path.name}"
            with writing(path):
                new.mkdir()
            write_inside(new, {**files, MANIFEST: manifest.to_bytes()})
            with writing(path):
                new.rename(path)  # fails if `path` is a folder that is not empty
                flush_folder(self.root)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Lock the store, so that only this process makes and removes runs.

        Leftovers of killed processes are removed.
        """
        with writing(self.root):
            if not self.root.is_dir():
                self.root.mkdir(parents=True, exist_ok=True)
                flush_folder(self.root.absolute().parent)
        with locked(self.root, f"another process is changing {self.root}: try again", PATIENCE):
            for leftover in (*self.root.glob(f"{NEW}*"), *self.root.glob(f"{REMOVED}*")):
                shutil.rmtree(leftover, ignore_errors=True)
            yield


def _open(recipe: Recipe, path: Path) -> RunFolder:
    """Open the run in this folder; raises RunMismatch unless it is of this recipe."""
    found = RunFolder(path)
    if found.recipe.digest() != recipe.digest():
        raise RunMismatch(
            f"{path} holds the run {found.manifest.name}: its folder was renamed; give it that "
            "name again, or move it away"
        )
    return found


def _has_manifest(folder: Path | str) -> bool:
    """Return whether the folder has a manifest, or has a run's name and is private to another user
    (paths may be text: there may be thousands).
    """
    try:
        os.lstat(f"{folder}{os.sep}{MANIFEST}")
    except PermissionError:
        return named_like_run(folder)  # opening the run raises an error that says so
    except OSError:
        return False
    return True


def named_like_run(folder: Path | str) -> bool:
    """Return whether the folder's name ends in a hash, as the names of runs do."""
    return HASH.fullmatch(str(folder).rpartition("-")[2]) is not None


def _nearest(name: str, names: Sequence[str]) -> str:
    """Return the names as text; if there are many, those most similar to `name`."""
    if len(names) <= NEAREST:
        return ", ".join(names) or "none"
    return f"{', '.join(alike(name, names, NEAREST, least=0.0))} and {len(names) - NEAREST} more"
