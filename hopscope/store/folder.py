"""One run on disk: a folder that can be copied as a whole.

config.json      the recipe
metrics/         Parquet: split, seed, step, hop, loss
checkpoints/     step-*: weights; optimiser-*: moments of the newest step
manifest.json    SHA-256 of each file above; written last
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import join
from typing import Any, TypeVar

from hopscope.configs import Recipe, read_recipe
from hopscope.display import Displayed
from hopscope.errors import ConfigError, RunDamaged, RunMismatch, RunMissing, RunReadOnly
from hopscope.machine import memory_bytes
from hopscope.store.files import (
    TEMPORARY,
    flush_folder,
    path_inside,
    read_inside,
    reading,
    remove_inside,
    sha256,
    write_inside,
    writing,
)
from hopscope.store.lock import LOCK, Held, holder_of, locked
from hopscope.store.manifest import (
    FILE_NAME,
    MANIFEST,
    MANIFEST_BYTES,
    PACKED,
    VERSION,
    FileEntry,
    is_derived,
    read_manifest,
)

CONFIG = "config.json"
GALLERY = "gallery/"
"""Prefix of the names of the models that come with hopscope."""
REMOVED = ".rm-"
"""Prefix of a run's folder while it is removed."""
FOLDERS = frozenset({"answers", "checkpoints", "explorer", "metrics", "parameters", "rows"})
"""Usual folders of a run. Any other folder also belongs to the run if its manifest names a file in
it, because kinds of runs from plugins may have more folders."""

T = TypeVar("T")
R = TypeVar("R", bound=Recipe)


def default_root() -> Path:
    """The default folder of runs: $HOPSCOPE_STORE, or ./runs."""
    return Path(os.environ.get("HOPSCOPE_STORE") or "runs")


def born(folder: Path | str) -> float:
    """Return when the run in this folder was made (seconds since 1970; 0 if there is no run)."""
    try:
        return os.lstat(f"{folder}{os.sep}{CONFIG}").st_mtime
    except OSError:
        return 0.0


def in_store(root: Path, *words: str) -> str:
    """The command `hopscope WORDS`, with --store unless this is the default store."""
    default = root.absolute() == default_root().absolute()
    return join(["hopscope", *words, *([] if default else ["--store", str(root)])])


class RunFolder(Displayed):
    """Reads and commits one run; the only writer of its files."""

    def __init__(self, path: Path, gallery: bool = False) -> None:
        self.path, self.gallery = path, gallery
        self._held: Held | None = None
        self.manifest = read_manifest(path)
        try:
            self.recipe: Recipe = read_recipe(self.read(CONFIG))
        except ConfigError as error:
            raise RunMismatch(
                f"{path / CONFIG} describes no run ({error}): `{self.command('rm')}`"
            ) from error

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The name of its folder. (A copy may have another name than its config gives it.)"""
        own = self.path.absolute().name
        return f"{GALLERY}{own}" if self.gallery else own

    def command(self, verb: str) -> str:
        """The command `hopscope VERB RUN`, with --store unless the run is in the default store."""
        return in_store(default_root() if self.gallery else self.path.parent, verb, self.name)

    @property
    def begun(self) -> bool:
        """Whether the run has committed any results."""
        return any("/" in name for name in self.manifest.files)

    @property
    def packed(self) -> bool:
        """Whether the run is a fleet of a sweep, which will be split into runs and removed."""
        return PACKED in self.manifest.files

    def check_recipe(self) -> None:
        """Raise RunMismatch if the recipe and the manifest are of different runs."""
        expected = self.recipe.run_name()
        if self.manifest.name != expected:
            raise RunMismatch(
                f"{self.path}: the manifest is of run {self.manifest.name[:100]!r}, but {CONFIG} "
                f"describes {expected}: restore the file that was changed"
            )

    def recipe_as(self, kind: type[R]) -> R:
        """Return the recipe; raises RunMismatch unless the run is of this kind."""
        recipe = self.recipe
        if not isinstance(recipe, kind):
            raise RunMismatch(
                f"{self.name} is a run of kind {recipe.kind}, expected one of kind "
                f"{kind.model_fields['kind'].default}: `{self.command('show')}` shows it"
            )
        return recipe

    def member(self, seed: int | None = None) -> int:
        """Return the index of the model with this seed (None: 0); raises if there is none."""
        seeds = self.recipe.seeds
        if seed is None:
            return 0
        if seed not in seeds:
            known = ", ".join(map(str, seeds))
            raise ConfigError(f"seed is {seed!r}; {self.name} has the seeds {known}")
        return seeds.index(seed)

    def files(self, prefix: str) -> list[str]:
        """Names of the committed files that begin with the prefix, sorted."""
        return sorted(name for name in self.manifest.files if name.startswith(prefix))

    def hashes(self, prefix: str) -> tuple[str, ...]:
        """Return the SHA-256 of each file of `files(prefix)`; they change if a file changes."""
        return tuple(self.manifest.files[name].sha256 for name in self.files(prefix))

    def read(self, name: str) -> bytes:
        """The content of a committed file, checked against its SHA-256."""
        return self.snapshot(lambda: self._read(name))

    def paths(self, prefix: str, verify: bool = False) -> list[Path]:
        """Return the paths of `files(prefix)`; checks their sizes, with `verify` also SHA-256."""
        names = self.files(prefix)
        if verify:
            for name in names:
                self._read(name)
        return [self._path(name) for name in names]

    def snapshot(self, look: Callable[[], T]) -> T:
        """Return `look()`; call it again if a commit removed a file that it was reading."""
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

    def _read(self, name: str) -> bytes:
        most = MANIFEST_BYTES if name.endswith(".json") else memory_bytes() // 4
        with self._remedies(name):
            if name not in self.manifest.files:
                raise RunDamaged(f"{self.path} has no committed {name}")
            entry = self.manifest.files[name]
            data = read_inside(self.path, entry.at or name, most, entry.size)
            if sha256(data) != entry.sha256:
                raise RunDamaged(f"{self.path / name} is damaged (its SHA-256 differs)")
        return data

    def _path(self, name: str) -> Path:
        with self._remedies(name):
            entry = self.manifest.files[name]
            return path_inside(self.path, entry.at or name, entry.size)

    @contextmanager
    def _remedies(self, name: str) -> Iterator[None]:
        """Add a remedy to a RunDamaged error raised in this block."""
        try:
            yield
        except RunDamaged as error:
            raise self.damaged(str(error), derived=is_derived(name)) from error

    def damaged(self, what: str, derived: bool = False) -> RunDamaged:
        """Return the error for a damaged file, with a remedy."""
        again = "make it again" if derived else f"`{self.command('rm')}` and train again"
        remedy = "install hopscope again" if self.gallery else f"restore it from a copy, or {again}"
        return RunDamaged(f"{what}: {remedy}")

    def commit(
        self, files: Mapping[str, bytes], drop: tuple[str, ...] = (), **changes: Any
    ) -> None:
        """Write files, then the manifest that names them; then remove the files in `drop`.

        Names are flushed before the manifest is written, so that every file in the manifest
        survives a power cut. A file that replaces a committed one gets another name on disk, so
        that the old file is intact until the manifest is written.
        """
        self.check_writable()
        self._check_lock()
        before = self.manifest
        kept = {name: entry for name, entry in before.files.items() if name not in drop}
        written = {name: self._entry(name, data) for name, data in files.items()}
        manifest = before.model_copy(update={**changes, "files": {**kept, **written}})
        assert all(map(FILE_NAME.fullmatch, files)), [*files]
        write_inside(self.path, {manifest.place(name): data for name, data in files.items()})
        self._check_lock()
        write_inside(self.path, {MANIFEST: manifest.to_bytes()})
        self.manifest = manifest
        for place in before.places - manifest.places:
            remove_inside(self.path, place)

    def _entry(self, name: str, data: bytes) -> FileEntry:
        entry, before = FileEntry.of(data), self.manifest.files.get(name)
        if before is None:
            return entry
        return before if before.sha256 == entry.sha256 else entry.replacing(name)

    def _check_lock(self) -> None:
        """Raise RunBusy if another process has taken over the run."""
        if self._held is not None:
            self._held.check(self.name)

    def check_writable(self) -> None:
        """Raise RunReadOnly for a model of the gallery."""
        if self.gallery:
            raise RunReadOnly(
                f"{self.name} is read-only, as it comes with hopscope: "
                f"`hopscope gallery --copy {self.path.name}` makes a run of it"
            )

    def check_resumable(self) -> None:
        """Raise RunMismatch if the folder's name is not the one that its recipe determines."""
        self.check_writable()
        expected = self.recipe.run_name()
        if self.name != expected:
            renamed = f"{expected} under another name: rename its folder to continue it"
            done = "complete: no steps are left"
            raise RunMismatch(f"{self.name} is {done if self.manifest.complete else renamed}")

    def leftovers(self) -> list[str]:
        """Return files left by an earlier process: named like a run's, but not in the manifest."""
        return [name for name in self._not_committed() if self._is_leftover(name)]

    def untracked(self) -> list[str]:
        """Return files that users put into the folder; hopscope does not touch them."""
        return [name for name in self._not_committed() if not self._is_leftover(name)]

    def _not_committed(self) -> list[str]:
        return sorted(file_sizes(self.path).keys() - self.manifest.places - {MANIFEST, LOCK})

    def _is_leftover(self, name: str) -> bool:
        """Return whether the file's name shows that hopscope wrote it.

        A .json file next to the manifest counts only if the manifest names a version of it.
        """
        path, (inner, _, own) = self.path / name, name.rpartition("/")
        if path.is_symlink() or not path.is_file():
            return False
        temporary = TEMPORARY.fullmatch(own)
        final = temporary[1] if temporary else own
        if inner:
            folders = FOLDERS | {each.rpartition("/")[0] for each in self.manifest.files}
            return inner in folders and FILE_NAME.fullmatch(f"{inner}/{final}") is not None
        known = (
            FILE_NAME.fullmatch(final) if temporary else VERSION.sub("", own) in self.manifest.files
        )
        return bool(known)

    def in_training(self) -> bool:
        """Return whether a process is writing to the run now."""
        holder = None if self.gallery else holder_of(self.path)
        return holder is not None and not holder.expired

    def damage(self) -> dict[str, str]:
        """Return one line for each damaged or missing committed file, by the file's name."""
        problems = {}
        for name, entry in list(self.manifest.files.items()):
            try:
                self.read(name)
            except RunDamaged as error:
                if self.manifest.files.get(name) == entry:  # not replaced by a commit meanwhile
                    problems[name] = str(error)
        return problems

    def verify(self) -> list[str]:
        """What is wrong with the run: one line for each damaged, missing or left-over file."""
        lines = [*self.damage().values()]
        try:
            self.check_recipe()
        except RunMismatch as error:
            lines.append(str(error))
        if self.leftovers() and not self.in_training():
            self.manifest = read_manifest(self.path)  # leftovers may just have been committed
            why = (
                "is not in the manifest: an earlier process left it, and the next that writes "
                "removes it"
            )
            lines += [f"{self.path / name} {why}" for name in self.leftovers()]
        return lines

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run for this process; remove leftovers of earlier processes."""
        self.check_writable()
        busy = f"{self.name} is being trained by another process: wait for it, or stop it"
        with locked(self.path, busy) as held:
            self._held = held
            try:
                self.manifest = read_manifest(self.path)  # another process may have committed
                for name in self.leftovers():
                    remove_inside(self.path, name)
                yield
            finally:
                self._held = None

    def remove(self) -> None:
        """Remove the run from its store; raises RunBusy if another process is training it."""
        with self.locked():
            discard(self.path)


def file_sizes(folder: Path) -> dict[str, int]:
    """Return the size of every file below the folder, by its relative path with slashes.

    Links are not followed; files that are removed meanwhile are left out.
    """
    sizes, waiting = dict[str, int](), [""]
    with reading(folder):
        while waiting:
            inner = waiting.pop()
            for entry in os.scandir(f"{folder}{os.sep}{inner}"):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{inner}{entry.name}/")
                    continue
                with suppress(FileNotFoundError):
                    sizes[inner + entry.name] = entry.stat(follow_symlinks=False).st_size
    return sizes


def discard(path: Path) -> None:
    """Remove a run's folder, or only the link if it is one.

    The folder is renamed first, so that a partly removed run is never read as a run.
    """
    with writing(path):
        if path.is_symlink():
            path.unlink()
        else:
            removed = path.with_name(f"{REMOVED}{path.name}-{os.getpid()}")
            path.rename(removed)
            flush_folder(path.parent)
            shutil.rmtree(removed)
        flush_folder(path.parent)
