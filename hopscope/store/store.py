"""All runs of one folder (`runs/` by default, or $HOPSCOPE_STORE)."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hopscope.configs import Recipe
from hopscope.display import Displayed
from hopscope.errors import ConfigError, RunMismatch, RunMissing, StoreError
from hopscope.names import alike
from hopscope.store import gallery
from hopscope.store.duck import check_name
from hopscope.store.files import flush_folder, flush_inside, write_inside, writing
from hopscope.store.folder import CONFIG, GALLERY, REMOVED, RunFolder, discard
from hopscope.store.listing import Listed, listed
from hopscope.store.lock import locked
from hopscope.store.manifest import MANIFEST, FileEntry, Manifest
from hopscope.store.query import Question
from hopscope.store.tags import check_tag, read_tags, write_tags

Look = Callable[[Path, tuple[str, ...]], Listed]
"""What looks at one run: at its folder, whose tags are known."""
NEW = ".new-"
"""Before the name of a run's folder that is being made."""
MAKING = 60.0
"""Seconds to wait for another process that makes or removes a run."""
NEAREST = 5
"""Names that a message lists at most."""


def default_root() -> Path:
    """The folder of runs if none is named: $HOPSCOPE_STORE, or ./runs."""
    return Path(os.environ.get("HOPSCOPE_STORE") or "runs")


class Store(Displayed):
    """A folder of runs: finds, creates, tags and removes them."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = default_root() if root is None else Path(root)

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def create(self, recipe: Recipe, beside: Mapping[str, bytes] | None = None) -> RunFolder:
        """The run of this recipe: the one that exists, or a new one of which nothing is done, with
        these files beside the recipe.
        """
        path = self.root / recipe.run_name()
        if not os.path.lexists(path / MANIFEST):
            files = {CONFIG: recipe.written(), **(beside or {})}
            entries = {name: FileEntry.of(data) for name, data in files.items()}
            self._make(path, files, Manifest(name=recipe.run_name(), files=entries))
        return _of(recipe, path)

    def copy(self, folder: RunFolder, name: str) -> RunFolder:
        """A copy of a run from elsewhere, under a name of its own."""
        if not name or name != Path(name).name or name.startswith("."):
            raise ConfigError(f"{name!r} cannot name a run: expected one folder's name")
        path = self.root / name
        if os.path.lexists(path / MANIFEST):
            raise RunMismatch(f"{path} is there already: `hopscope rm {name}` removes it")
        files = {file: folder.read(file) for file in folder.manifest.files}
        self._make(path, files, folder.manifest.copied())
        return RunFolder(path)

    def has_complete(self, recipe: Recipe) -> bool:
        """Is there a run of this recipe, and is it complete? Nothing is created."""
        found = self.of(recipe)
        return found is not None and found.manifest.complete

    def of(self, recipe: Recipe) -> RunFolder | None:
        """The run of this recipe, if there is one. Nothing is created."""
        path = self.root / recipe.run_name()
        return _of(recipe, path) if os.path.lexists(path / MANIFEST) else None

    def find(self, name: str, beside: str = "") -> RunFolder:
        """The run of this name; else the one with this tag; else the one whose name contains it.

        `gallery/NAME` is a model that comes with hopscope. The run called `beside` is left out.
        """
        if not isinstance(name, str):
            raise ConfigError(
                f"a run is named by text, as 'gallery/demo'; got {type(name).__name__}"
            )
        if name.startswith(GALLERY):
            return gallery.find(name)
        names = [each for each in self.names() if each != beside]
        matches = [n for n in names if n == name] or self._tagged(name, names)
        matches = matches or [n for n in names if name and name in n]
        if len(matches) != 1:
            problem = f"{len(matches)} runs match" if matches else "no run matches"
            kind = "They are" if matches else "There are"
            also = f"; or {GALLERY}{name}, which comes with hopscope"
            raise RunMissing(
                f"{problem} {name!r} in {self.root}. {kind}: {_listed(name, matches or names)}"
                f"{also if name in gallery.names() else ''}"
            )
        return RunFolder(self.root / matches[0])

    def removable(self, name: str) -> str:
        """The run of this name or with this tag, or whose name ends in this hash; a part of a name
        could hit another run than was meant.
        """
        if name.startswith(GALLERY):
            gallery.find(name).check_writable()
        names = self.names()
        found = [n for n in names if name in (n, n.rpartition("-")[2])]
        found = found or self._tagged(name, names)
        if len(found) != 1:
            raise RunMissing(
                f"{len(found) or 'no'} runs in {self.root} are named {name!r}, and rm takes no "
                f"less than a whole name, hash or tag. There are: {_listed(name, found or names)}"
            )
        return found[0]

    def remove(self, name: str) -> Path:
        """Remove a run, by its whole name, hash or tag, even one that cannot be read any more."""
        path = self.root / self.removable(name)
        with self._changing():
            tags = read_tags(self.root)
            try:
                folder = None if path.is_symlink() else RunFolder(path)
            except StoreError:
                folder = None
            if folder is None:
                discard(path)
            else:
                folder.remove()
            if tags.pop(path.name, None):
                write_tags(self.root, tags)
        return path

    def tags(self) -> dict[str, tuple[str, ...]]:
        """The tags of each run that has any and is there, in alphabetical order."""
        kept = read_tags(self.root)
        return {name: kept[name] for name in self.names() if name in kept}

    def tag(self, name: str, *tags: str) -> tuple[str, ...]:
        """Give a run these tags, beside those that it has; all of them then."""
        for tag in tags:
            check_tag(tag)
            if tag in self.names():
                raise ConfigError(f"{tag!r} is the name of a run: choose another word for a tag")
        return self._retag(name, lambda had: {*had, *tags})

    def untag(self, name: str, *tags: str) -> tuple[str, ...]:
        """Take these tags from a run; those that are left then."""
        run = self._own(name)
        had = self.tags().get(run, ())
        if missing := [tag for tag in tags if tag not in had]:
            raise ConfigError(f"{run} has no tag {missing[0]!r}; it has {', '.join(had) or 'none'}")
        return self._retag(run, lambda had: {*had} - {*tags})

    def listed(
        self, look: Look = listed, names: Sequence[str] | None = None
    ) -> tuple[list[Listed], list[str]]:
        """Every run (or those of these names) with its state, oldest first; and a line for each
        problem there is.

        `look` may be another function than the one that looks at each run anew.
        """
        problems = self._without_manifest()
        try:
            tags = read_tags(self.root)
        except StoreError as error:
            tags, problems = {}, [*problems, str(error)]
        names = self.names() if names is None else names
        found = []
        for name in names:
            with suppress(RunMissing):  # it was removed meanwhile
                found.append(look(self.root / name, tags.get(name, ())))
        return found, [*(run.problem for run in found if run.problem), *problems]

    def sql(self, query: str) -> Question:
        """A question across all runs, in SQL: `.rows()`, `.df()` and `.arrow()` answer it."""
        return Question(self, query)

    def names(self) -> list[str]:
        """The runs there are, oldest first."""
        try:
            entries = [entry.path for entry in os.scandir(self.root) if entry.name[0] != "."]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(
                f"cannot read {self.root}: {error.strerror}; expected a folder of runs"
            ) from error
        runs = sorted((_born(path), path) for path in entries if _is_run(path))
        return [os.path.basename(path) for _, path in runs]  # noqa: PTH119  (of thousands)

    def readable(self) -> tuple[list[RunFolder], list[str]]:
        """All runs that can be read, and one line for each that cannot."""
        runs, problems = [], self._without_manifest()
        for name in self.names():
            try:
                runs.append(RunFolder(self.root / name))
            except RunMissing:  # it was removed since it was listed
                continue
            except StoreError as error:
                problems.append(str(error))
        return runs, problems

    def _without_manifest(self) -> list[str]:
        """One line for each folder that was a run once."""
        return [
            f"{config.parent} has a {CONFIG} and no {MANIFEST}: restore or remove the run"
            for config in sorted(self.root.glob(f"[!.]*/{CONFIG}"))
            if not os.path.lexists(config.parent / MANIFEST)
        ]

    def _own(self, name: str) -> str:
        """The name of a run of this store; those of the gallery are in none."""
        folder = self.find(name)
        folder.check_writable()
        return folder.name

    def _tagged(self, tag: str, names: Sequence[str]) -> list[str]:
        """Those of these runs that have this tag."""
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
        """A new run, there whole or not at all; one that another process has made stays."""
        check_name(path)
        with self._changing():
            if os.path.lexists(path / MANIFEST):
                return
            new = self.root / f"{NEW}{path.name}"
            with writing(path):
                new.mkdir()
            for name, data in {**files, MANIFEST: manifest.to_bytes()}.items():
                write_inside(new, name, data)
            flush_inside(new, files)
            with writing(path):
                new.rename(path)  # a folder that holds anything stays, and is in the way
                flush_folder(self.root)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One process at a time makes and removes runs."""
        with writing(self.root):
            if not self.root.is_dir():
                self.root.mkdir(parents=True, exist_ok=True)
                flush_folder(self.root.absolute().parent)
        with locked(self.root, f"another process is changing {self.root}: try again", MAKING):
            for stale in (*self.root.glob(f"{NEW}*"), *self.root.glob(f"{REMOVED}*")):
                # What a killed process left; if it cannot be removed, it is in nobody's way.
                shutil.rmtree(stale, ignore_errors=True)
            yield


def _of(recipe: Recipe, path: Path) -> RunFolder:
    """The run in this folder, which must be of this recipe, as the folder's name says."""
    found = RunFolder(path)
    if found.recipe.digest() != recipe.digest():
        raise RunMismatch(
            f"{path} holds the run {found.manifest.name}: its folder was renamed; give it that "
            "name again, or move it away"
        )
    return found


def _is_run(folder: str) -> bool:
    """Has the folder a manifest? One that may not be looked into may have."""
    try:
        os.lstat(f"{folder}{os.sep}{MANIFEST}")
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _listed(name: str, names: Sequence[str]) -> str:
    """The names, or of many those that are most like this one."""
    if len(names) <= NEAREST:
        return ", ".join(names) or "none"
    return f"{', '.join(alike(name, names, NEAREST, least=0.0))} and {len(names) - NEAREST} more"


def _born(folder: str) -> float:
    try:
        return os.lstat(f"{folder}{os.sep}{CONFIG}").st_mtime
    except OSError:
        return 0.0
