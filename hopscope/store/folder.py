"""One run on disk: a folder that anyone can copy.

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
from typing import Any, TypeVar

from hopscope.configs import Recipe, read_recipe
from hopscope.display import Displayed
from hopscope.errors import (
    ConfigError,
    FactError,
    RunDamaged,
    RunMismatch,
    RunReadOnly,
    RunUnreadable,
)
from hopscope.machine import memory_bytes
from hopscope.store.files import (
    flush_folder,
    flush_inside,
    read_inside,
    remove_inside,
    sha256,
    write_inside,
    writing,
)
from hopscope.store.lease import check_lease, lease_of, leased
from hopscope.store.leftovers import Strays, strays
from hopscope.store.lock import LOCK, is_locked, locked
from hopscope.store.manifest import (
    MANIFEST,
    MOST_BYTES,
    NAME,
    FileEntry,
    is_aside,
    read_manifest,
)
from hopscope.store.pending import pending, places, settle

CONFIG = "config.json"
GALLERY = "gallery/"
"""Before the names of the models that come with hopscope."""
REMOVED = ".rm-"
"""Before the name of a run's folder that is being removed."""

Found = TypeVar("Found")
R = TypeVar("R", bound=Recipe)


class RunFolder(Displayed):
    """Reads and commits one run; the only writer of its files."""

    def __init__(self, path: Path, gallery: bool = False) -> None:
        self.path, self.gallery = path, gallery
        self._lease: bytes | None = None
        self.manifest = read_manifest(path)
        self.recipe: Recipe = self._recipe()
        wanted = self.recipe.run_name()
        if self.manifest.name != wanted:
            raise RunMismatch(
                f"{path}: the manifest is of run {self.manifest.name[:100]!r}, but {CONFIG} "
                f"describes {wanted}: restore the file that was changed"
            )

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def _recipe(self) -> Recipe:
        try:
            return read_recipe(self.read(CONFIG))
        except (ConfigError, FactError) as error:
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

    def recipe_as(self, wanted: type[R]) -> R:
        """The recipe, of a run that must be of this kind."""
        found = self.recipe
        if not isinstance(found, wanted):
            raise RunMismatch(
                f"{self.name} is a run of kind {found.kind}, expected one of kind "
                f"{wanted.model_fields['kind'].default}: "
                f"`hopscope show {self.name}` shows it"
            )
        return found

    def read(self, name: str) -> bytes:
        """A committed file, checked against the manifest."""
        return self.steadily(lambda: self._found(name))[1]

    def _found(self, name: str) -> tuple[str, bytes]:
        """Where a committed file is, and what is in it."""
        entry = self.manifest.files.get(name)
        if entry is None:
            raise RunDamaged(f"{self.path} has no committed {name}")
        *first, last = places(name, entry)
        for place in first:
            with suppress(RunDamaged):
                return place, self._as_committed(place, entry)
        try:
            return last, self._as_committed(last, entry)
        except RunUnreadable:
            raise
        except RunDamaged as error:
            raise RunDamaged(f"{error}: {self.remedy(name)}") from error

    def _as_committed(self, name: str, entry: FileEntry) -> bytes:
        most = MOST_BYTES if ".json" in name else memory_bytes() // 4
        data = read_inside(self.path, name, most, entry.size)
        if sha256(data) != entry.sha256:
            raise RunDamaged(f"{self.path / name} is damaged (its SHA-256 differs)")
        return data

    def remedy(self, name: str) -> str:
        """What to do about a damaged file."""
        if self.gallery:
            return "install hopscope again"
        again = "make it again" if is_aside(name) else f"`hopscope rm {self.name}` and train again"
        return f"restore it from a copy, or {again}"

    def files(self, prefix: str) -> list[str]:
        """Committed files whose names start with the prefix, sorted."""
        return sorted(name for name in self.manifest.files if name.startswith(prefix))

    def checked(self, prefix: str) -> list[Path]:
        """The same files as paths, once each was found to be as it was committed."""
        return [self.path / self._found(name)[0] for name in self.files(prefix)]

    def steadily(self, look: Callable[[], Found]) -> Found:
        """What `look` finds; it looks again if a commit took away a file that it was reading."""
        while True:
            manifest = self.manifest
            try:
                return look()
            except RunDamaged:
                self.manifest = read_manifest(self.path)
                if self.manifest == manifest:
                    raise

    def commit(
        self, files: Mapping[str, bytes], drop: tuple[str, ...] = (), **changes: Any
    ) -> None:
        """Write files, then the manifest that names them; then remove what it no longer names.

        The names of files and folders are flushed before the manifest, so that after a power cut
        every file is there that the manifest names. What replaces a committed file takes its place
        after the manifest.
        """
        self.check_writable()
        self._check_lease()
        kept = {name: e for name, e in self.manifest.files.items() if name not in drop}
        written = {name: FileEntry.of(data) for name, data in files.items()}
        where = {name: self._place(name, entry) for name, entry in written.items()}
        for name, data in files.items():
            assert NAME.fullmatch(name), name
            write_inside(self.path, where[name], data)
        if files:
            flush_inside(self.path, set(where.values()))
        update = {**changes, "files": {**kept, **written}}
        manifest = self.manifest.model_copy(update=update)
        self._check_lease()
        write_inside(self.path, MANIFEST, manifest.to_bytes())
        flush_inside(self.path, {MANIFEST})
        self.manifest = manifest
        settle(self.path, {name: entry for name, entry in written.items() if name != where[name]})
        for name in drop:
            if name not in files:
                remove_inside(self.path, name)

    def _place(self, name: str, entry: FileEntry) -> str:
        """Where a file is written to: one that replaces another waits for the manifest."""
        return name if self.manifest.files.get(name, entry) == entry else pending(name, entry)

    def _check_lease(self) -> None:
        """Refuse a commit that comes too late: somebody else has taken the run since."""
        if self._lease is not None:
            check_lease(self.path, self._lease, self.name)

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

    def strays(self) -> Strays:
        """What is in the folder beside the committed files."""
        named = self.manifest.files
        return strays(self.path, {*named, *(pending(*each) for each in named.items())})

    def sweep_leftovers(self) -> None:
        """Remove what a killed process left; what others put into the folder stays."""
        for name in self.strays().leftovers:
            remove_inside(self.path, name)

    def in_training(self) -> bool:
        """Does a process write to it at this moment?"""
        if self.gallery:
            return False
        if is_locked(self.path):
            return True
        lease = lease_of(self.path)  # of another machine, which our locks know nothing of
        return lease is not None and not lease.over

    def damage(self) -> dict[str, str]:
        """The committed files that are damaged or missing, and a line on each."""
        problems = {}
        for name, entry in self.manifest.files.items():
            try:
                self.read(name)
            except RunDamaged as error:
                # A commit may have replaced it, or dropped it, since our manifest was read.
                if read_manifest(self.path).files.get(name) == entry:
                    problems[name] = str(error)
        return problems

    def verify(self) -> list[str]:
        """What is wrong with the run: one line for each damaged, missing or forgotten file."""
        why = "is in no manifest: a killed process left it, and going on with the run removes it"
        forgotten = [f"{self.path / name} {why}" for name in self._forgotten()]
        return [*self.damage().values(), *forgotten]

    def _forgotten(self) -> tuple[str, ...]:
        """Files that no process is about to commit, or has just committed."""
        if not self.strays().leftovers or self.in_training():
            return ()
        self.manifest = read_manifest(self.path)
        left = self.strays().leftovers
        return () if self.in_training() else left

    @contextmanager
    def locked(self, take_over: bool = False) -> Iterator[None]:
        """Only one process trains a run; the lock ends with the process, however it ends.

        Whoever may take over does so from a process that has the lock and was not heard of for the
        time of its lease; that one's next commit is refused.
        """
        self.check_writable()
        busy = f"{self.name} is being trained by another process: wait for it, or stop it"
        if take_over and (lease := lease_of(self.path)) and lease.silent and is_locked(self.path):
            remove_inside(self.path, LOCK)
        with locked(self.path, busy), leased(self.path, self.name) as mine:
            self._lease = mine
            try:
                # Another process may have committed between our reading and the lock.
                self.manifest = read_manifest(self.path)
                settle(self.path, self.manifest.files)
                yield
            finally:
                self._lease = None

    def remove(self) -> None:
        """Remove it from its store, unless another process trains it."""
        with self.locked():
            discard(self.path)


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
