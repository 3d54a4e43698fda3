"""One run on disk: a folder that anyone can copy.

config.json      the experiment
metrics/         Parquet: split, seed, step, hop, loss
checkpoints/     step-*: weights; optimiser-*: moments of the newest step
manifest.json    SHA-256 of each file above; written last
"""

import fcntl
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hopscope.configs import Recipe, read_recipe
from hopscope.errors import ConfigError, RunBusy, RunDamaged, RunMismatch, RunReadOnly
from hopscope.store.files import flush_folder, read_bytes, write_bytes, writing
from hopscope.store.manifest import MANIFEST, FileEntry, read_manifest

CONFIG = "config.json"
LOCK = ".lock"
GALLERY = "gallery/"
"""Before the names of the models that come with hopscope."""


class RunFolder:
    """Reads and commits one run; the only writer of its files."""

    def __init__(self, path: Path, gallery: bool = False) -> None:
        self.path, self.gallery = path, gallery
        self.manifest = read_manifest(path)
        self.experiment: Recipe = self._recipe()
        wanted = self.experiment.run_name()
        if self.manifest.name != wanted:
            raise RunMismatch(
                f"{path}: the manifest is of run {self.manifest.name}, but {CONFIG} describes "
                f"{wanted}: restore the file that was changed"
            )

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

    def read(self, name: str) -> bytes:
        """A committed file, checked against the manifest."""
        entry = self.manifest.files.get(name)
        if entry is None:
            raise RunDamaged(f"{self.path} has no committed {name}")
        data = read_bytes(self.path / name)
        if FileEntry.of(data) != entry:
            size = f"{len(data)} bytes, expected {entry.size}"
            what = size if len(data) != entry.size else "its SHA-256 differs"
            again = f"restore it from a copy, or `hopscope rm {self.name}` and train again"
            remedy = "install hopscope again" if self.gallery else again
            raise RunDamaged(f"{self.path / name} is damaged ({what}): {remedy}")
        return data

    def files(self, prefix: str) -> list[str]:
        """Committed files whose names start with the prefix, sorted."""
        return sorted(name for name in self.manifest.files if name.startswith(prefix))

    def commit(
        self,
        files: Mapping[str, bytes],
        drop: tuple[str, ...] = (),
        **changes: int | float | str | bool,
    ) -> None:
        """Write files, then the manifest that names them; then remove what it no longer names."""
        self.check_writable()
        for name, data in files.items():
            write_bytes(self.path / name, data)
        kept = {name: e for name, e in self.manifest.files.items() if name not in drop}
        written = {name: FileEntry.of(data) for name, data in files.items()}
        manifest = self.manifest.model_copy(update={**changes, "files": {**kept, **written}})
        write_bytes(self.path / MANIFEST, manifest.to_bytes())
        self.manifest = manifest
        for name in drop:
            if name not in files:
                with writing(self.path / name):
                    (self.path / name).unlink(missing_ok=True)

    def check_writable(self) -> None:
        """May it be written to?"""
        if self.gallery:
            raise RunReadOnly(
                f"{self.name} is read-only, as it comes with hopscope: "
                f"`hopscope gallery copy {self.path.name}` makes a run of it"
            )

    def check_resumable(self) -> None:
        """Can its training go on? Only under the name that its config gives it."""
        self.check_writable()
        wanted = self.experiment.run_name()
        if self.name != wanted:
            renamed = f"{wanted} under another name: rename its folder to go on with it"
            done = "complete: there is nothing to go on with"
            raise RunMismatch(f"{self.name} is {done if self.manifest.complete else renamed}")

    def sweep_leftovers(self) -> None:
        """Remove what a killed process left."""
        for path in self.leftovers():
            with writing(path):
                path.unlink()

    def leftovers(self) -> list[Path]:
        """Files that no manifest names."""
        known = {self.path / name for name in (*self.manifest.files, MANIFEST, LOCK)}
        return [p for p in sorted(self.path.rglob("*")) if p.is_file() and p not in known]

    def verify(self) -> list[str]:
        """What is wrong with the run: one line per damaged, missing or unknown file."""
        problems = []
        for name in self.manifest.files:
            try:
                self.read(name)
            except RunDamaged as error:
                problems.append(str(error))
        strays = self.leftovers()
        why = "is in no manifest: left by a killed process, or added"
        return problems + [f"{path} {why}" for path in strays]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process trains a run; the lock ends with the process, however it ends."""
        self.check_writable()
        with writing(self.path / LOCK):
            file = (self.path / LOCK).open("w")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunBusy(
                    f"{self.name} is being trained by another process: wait for it, or stop it"
                ) from error
            # Another process may have committed between our reading and the lock.
            self.manifest = read_manifest(self.path)
            yield

    def remove(self) -> None:
        with self.locked():
            discard(self.path)


def discard(path: Path) -> None:
    """Remove a run's folder. The manifest goes first: half a removal is no run at all."""
    with writing(path):
        (path / MANIFEST).unlink()
        shutil.rmtree(path)
        flush_folder(path.parent)
