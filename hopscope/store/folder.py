"""One run on disk: a folder that anyone can copy.

config.json      the recipe
metrics/         Parquet: split, seed, step, hop, loss
checkpoints/     step-*: weights; optimiser-*: moments of the newest step
manifest.json    SHA-256 of each file above; written last
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hopscope.configs import Recipe, read_recipe
from hopscope.display import Displayed
from hopscope.errors import (
    ConfigError,
    RunDamaged,
    RunMismatch,
    RunMissing,
    RunReadOnly,
    RunUnreadable,
)
from hopscope.machine import memory_bytes
from hopscope.store.files import (
    TEMPORARY,
    flush_folder,
    flush_inside,
    path_inside,
    read_inside,
    remove_inside,
    sha256,
    write_inside,
    writing,
)
from hopscope.store.lock import LOCK, Held, holder_of, locked
from hopscope.store.manifest import (
    MANIFEST,
    MOST_BYTES,
    NAME,
    VERSION,
    FileEntry,
    is_derived,
    read_manifest,
)

CONFIG = "config.json"
GALLERY = "gallery/"
"""Before the names of the models that come with hopscope."""
REMOVED = ".rm-"
"""Before the name of a run's folder that is being removed."""
FOLDERS = frozenset({"answers", "checkpoints", "explorer", "metrics", "parameters", "rows"})
"""A run's own folders. A kind of run that others add may have more: a folder is the run's own, too,
once its manifest names a file in it."""

Found = TypeVar("Found")
R = TypeVar("R", bound=Recipe)


class RunFolder(Displayed):
    """Reads and commits one run; the only writer of its files."""

    def __init__(self, path: Path, gallery: bool = False) -> None:
        self.path, self.gallery = path, gallery
        self._held: Held | None = None
        self.manifest = read_manifest(path)
        self.recipe: Recipe = self._recipe()

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def _recipe(self) -> Recipe:
        try:
            return read_recipe(self.read(CONFIG))
        except ConfigError as error:
            raise RunMismatch(
                f"{self.path / CONFIG} describes no run ({error}): `hopscope rm {self.path.name}`"
            ) from error

    @property
    def name(self) -> str:
        """What it is asked for by. A copy may have another name than its config gives it."""
        own = self.path.absolute().name
        return f"{GALLERY}{own}" if self.gallery else own

    @property
    def begun(self) -> bool:
        """Was anything of it computed and committed?"""
        return any("/" in name for name in self.manifest.files)

    def check_recipe(self) -> None:
        """Is the recipe that of the run that the manifest names?"""
        wanted = self.recipe.run_name()
        if self.manifest.name != wanted:
            raise RunMismatch(
                f"{self.path}: the manifest is of run {self.manifest.name[:100]!r}, but {CONFIG} "
                f"describes {wanted}: restore the file that was changed"
            )

    def recipe_as(self, wanted: type[R]) -> R:
        """The recipe, of a run that must be of this kind."""
        found = self.recipe
        if not isinstance(found, wanted):
            raise RunMismatch(
                f"{self.name} is a run of kind {found.kind}, expected one of kind "
                f"{wanted.model_fields['kind'].default}: `hopscope show {self.name}` shows it"
            )
        return found

    def read(self, name: str) -> bytes:
        """A committed file, whose SHA-256 is that of the manifest."""
        return self.steadily(lambda: self._read(name))

    def _read(self, name: str) -> bytes:
        most = MOST_BYTES if name.endswith(".json") else memory_bytes() // 4
        with self._with_remedy(name):
            entry = self._committed(name)
            data = read_inside(self.path, entry.at or name, most, entry.size)
            if sha256(data) != entry.sha256:
                raise RunDamaged(f"{self.path / name} is damaged (its SHA-256 differs)")
        return data

    def files(self, prefix: str) -> list[str]:
        """Committed files whose names start with the prefix, sorted."""
        return sorted(name for name in self.manifest.files if name.startswith(prefix))

    def paths(self, prefix: str) -> list[Path]:
        """Where the same files are: each is there, with the size that it was committed with."""
        found = []
        for name in self.files(prefix):
            with self._with_remedy(name):
                entry = self._committed(name)
                found.append(path_inside(self.path, entry.at or name, entry.size))
        return found

    def checked(self, prefix: str) -> list[Path]:
        """The same, once the SHA-256 of each was found to be that of the manifest."""
        for name in self.files(prefix):
            self._read(name)
        return self.paths(prefix)

    def _committed(self, name: str) -> FileEntry:
        if name not in self.manifest.files:
            raise RunDamaged(f"{self.path} has no committed {name}")
        return self.manifest.files[name]

    @contextmanager
    def _with_remedy(self, name: str) -> Iterator[None]:
        """Adds to an error about damage what to do about it."""
        try:
            yield
        except RunUnreadable:
            raise
        except RunDamaged as error:
            raise RunDamaged(f"{error}: {self.remedy(name)}") from error

    def remedy(self, name: str) -> str:
        """What to do about a damaged file."""
        if self.gallery:
            return "install hopscope again"
        again = (
            "make it again" if is_derived(name) else f"`hopscope rm {self.name}` and train again"
        )
        return f"restore it from a copy, or {again}"

    def steadily(self, look: Callable[[], Found]) -> Found:
        """What `look` finds; it looks again if a commit took away a file that it was reading."""
        while True:
            manifest = self.manifest
            try:
                return look()
            except RunDamaged as error:
                if not os.path.lexists(self.path / MANIFEST):
                    raise RunMissing(f"{self.name} was removed meanwhile") from error
                self.manifest = read_manifest(self.path)
                if self.manifest == manifest:
                    raise

    def commit(
        self, files: Mapping[str, bytes], drop: tuple[str, ...] = (), **changes: Any
    ) -> None:
        """Write files, then the manifest that names them; then remove what it no longer names.

        The names of files and folders are flushed before the manifest, so that after a power cut
        every file is there that the manifest names. A file that replaces a committed one has a name
        of its own, so that the old one is whole until the manifest is written.
        """
        self.check_writable()
        self._check_lock()
        before = self.manifest
        kept = {name: entry for name, entry in before.files.items() if name not in drop}
        written = {name: self._entry(name, data) for name, data in files.items()}
        update = {**changes, "files": {**kept, **written}}
        manifest = before.model_copy(update=update)
        for name, data in files.items():
            assert NAME.fullmatch(name), name
            write_inside(self.path, manifest.place(name), data)
        if files:
            flush_inside(self.path, map(manifest.place, files))
        self._check_lock()
        write_inside(self.path, MANIFEST, manifest.to_bytes())
        flush_inside(self.path, {MANIFEST})
        self.manifest = manifest
        for place in before.places - manifest.places:
            remove_inside(self.path, place)

    def _entry(self, name: str, data: bytes) -> FileEntry:
        entry, there = FileEntry.of(data), self.manifest.files.get(name)
        if there is None:
            return entry
        return there if there.sha256 == entry.sha256 else entry.replacing(name)

    def _check_lock(self) -> None:
        """Refuse a commit that comes too late: somebody else has taken the run since."""
        if self._held is not None:
            self._held.check(self.name)

    def check_writable(self) -> None:
        """Refuse to write to a model of the gallery."""
        if self.gallery:
            raise RunReadOnly(
                f"{self.name} is read-only, as it comes with hopscope: "
                f"`hopscope gallery copy {self.path.name}` makes a run of it"
            )

    def check_resumable(self) -> None:
        """Can its training go on? Only under the name that its config gives it."""
        self.check_writable()
        wanted = self.recipe.run_name()
        if self.name != wanted:
            renamed = f"{wanted} under another name: rename its folder to go on with it"
            done = "complete: there is nothing to go on with"
            raise RunMismatch(f"{self.name} is {done if self.manifest.complete else renamed}")

    def leftovers(self) -> list[str]:
        """Files of ours that the manifest does not name: what a killed process left."""
        return [name for name in self._others() if self._is_ours(name)]

    def foreign(self) -> list[str]:
        """Files that somebody put there; they stay."""
        ours = set(self.leftovers())
        return [name for name in self._others() if name not in ours]

    def _others(self) -> list[str]:
        named = self.manifest.places | {MANIFEST, LOCK}
        return sorted({*files_in(self.path)} - named)

    def _is_ours(self, name: str) -> bool:
        """Is a file named as only hopscope names its own? A .json beside the manifest may be
        anybody's, unless the manifest names another version of it.
        """
        path, (inner, _, own) = self.path / name, name.rpartition("/")
        if path.is_symlink() or not path.is_file():
            return False
        final = own
        while temporary := TEMPORARY.fullmatch(final):
            final = temporary[1]
        if inner:
            folders = FOLDERS | {each.rpartition("/")[0] for each in self.manifest.files}
            return inner in folders and NAME.fullmatch(f"{inner}/{final}") is not None
        if final != own:
            return final == MANIFEST or NAME.fullmatch(final) is not None
        return VERSION.sub("", name) in self.manifest.files

    def in_training(self) -> bool:
        """Does a process write to it at this moment?"""
        holder = None if self.gallery else holder_of(self.path)
        return holder is not None and not holder.silent

    def damage(self) -> dict[str, str]:
        """The committed files that are damaged or missing, and a line on each."""
        problems = {}
        for name, entry in list(self.manifest.files.items()):
            try:
                self.read(name)
            except RunDamaged as error:
                # A commit may have replaced it, or dropped it, since our manifest was read.
                if self.manifest.files.get(name) == entry:
                    problems[name] = str(error)
        return problems

    def verify(self) -> list[str]:
        """What is wrong with the run: one line for each damaged, missing or forgotten file."""
        lines = [*self.damage().values()]
        try:
            self.check_recipe()
        except RunMismatch as error:
            lines.append(str(error))
        if self.leftovers() and not self.in_training():
            self.manifest = read_manifest(self.path)  # it may just have been committed
            why = "is in no manifest: a killed process left it, and the next that writes removes it"
            lines += [f"{self.path / name} {why}" for name in self.leftovers()]
        return lines

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process writes to a run. What a killed one left is removed first."""
        self.check_writable()
        busy = f"{self.name} is being trained by another process: wait for it, or stop it"
        with locked(self.path, busy) as held:
            self._held = held
            try:
                # Another process may have committed between our reading and the lock.
                self.manifest = read_manifest(self.path)
                for name in self.leftovers():
                    remove_inside(self.path, name)
                yield
            finally:
                self._held = None

    def remove(self) -> None:
        """Remove it from its store, unless another process trains it."""
        with self.locked():
            discard(self.path)


def files_in(folder: Path) -> list[str]:
    """Every file below the folder; a link is not followed."""
    found, waiting, start = [], [str(folder)], len(str(folder / "x")) - 1
    try:
        while waiting:
            inner = waiting.pop()
            for entry in os.scandir(inner):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    found.append(entry.path[start:])
    except FileNotFoundError as error:
        raise RunMissing(f"{folder.name} was removed meanwhile") from error
    except OSError as error:
        raise RunDamaged(f"cannot read {inner}: {error.strerror}") from error
    return found


def discard(path: Path) -> None:
    """Remove a run's folder (of a link to one, the link). It is renamed first: half a removal is
    no run at all, and it is known whose rubbish it is.
    """
    with writing(path):
        if path.is_symlink():
            path.unlink()
        else:
            rubbish = path.with_name(f"{REMOVED}{path.name}-{os.getpid()}")
            path.rename(rubbish)
            flush_folder(path.parent)
            shutil.rmtree(rubbish)
        flush_folder(path.parent)
