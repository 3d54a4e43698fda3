"""All runs of one folder (`runs/` by default, or $HOPSCOPE_STORE)."""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hopscope.configs import Recipe
from hopscope.errors import RunDamaged, RunMismatch, RunMissing, StoreError
from hopscope.store import gallery
from hopscope.store.files import flush_folder, write_bytes, writing
from hopscope.store.folder import CONFIG, GALLERY, RunFolder, discard
from hopscope.store.manifest import MANIFEST, FileEntry, Manifest

NEW = ".new-"


def default_root() -> Path:
    return Path(os.environ.get("HOPSCOPE_STORE", "runs"))


class Store:
    """Finds, creates and removes runs."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = default_root() if root is None else Path(root)

    def create(self, experiment: Recipe) -> RunFolder:
        """The run of this experiment: the one that exists, or a new, untrained one."""
        path = self.root / experiment.run_name()
        if not (path / MANIFEST).exists():
            config = (experiment.canonical_json() + "\n").encode()
            manifest = Manifest(name=experiment.run_name(), files={CONFIG: FileEntry.of(config)})
            self._make(path, {CONFIG: config}, manifest)
        return RunFolder(path)

    def copy(self, folder: RunFolder, name: str) -> RunFolder:
        """A copy of a run from elsewhere, under a name of its own."""
        path = self.root / name
        if (path / MANIFEST).exists():
            raise RunMismatch(f"{path} is there already: `hopscope rm {name}` removes it")
        files = {file: folder.read(file) for file in folder.manifest.files}
        self._make(path, files, folder.manifest)
        return RunFolder(path)

    def has_complete(self, experiment: Recipe) -> bool:
        """Is there a run of this experiment, and is it complete? Nothing is created."""
        path = self.root / experiment.run_name()
        return (path / MANIFEST).exists() and RunFolder(path).manifest.complete

    def find(self, name: str, beside: str = "") -> RunFolder:
        """The run whose name is, starts with, or contains the given one, if it is the only one
        (beside the run that is excepted); `gallery/NAME` is a model that comes with hopscope.
        """
        if name.startswith(GALLERY):
            return gallery.find(name)
        names = [each for each in self.names() if each != beside]
        matches = [n for n in names if n == name] or [n for n in names if name and name in n]
        if len(matches) != 1:
            problem = f"{len(matches)} runs match" if matches else "no run matches"
            listed = ", ".join(matches or names) or "none"
            kind = "They are" if matches else "There are"
            raise RunMissing(f"{problem} {name!r} in {self.root}. {kind}: {listed}")
        return RunFolder(self.root / matches[0])

    def removable(self, name: str) -> str:
        """The run of this name, or whose name ends in this hash; a part of a name could hit another
        run than was meant.
        """
        if name.startswith(GALLERY):
            gallery.find(name).check_writable()
        found = [n for n in self.names() if name in (n, n.rpartition("-")[2])]
        if len(found) != 1:
            listed = ", ".join(found or self.names()) or "none"
            raise RunMissing(
                f"{len(found) or 'no'} runs in {self.root} are named {name!r}, and rm takes no "
                f"less than a whole name or hash. There are: {listed}"
            )
        return found[0]

    def remove(self, name: str) -> Path:
        """Remove a run, by its whole name or hash, even one that cannot be read any more."""
        path = self.root / self.removable(name)
        try:
            folder = RunFolder(path)
        except (RunDamaged, RunMismatch):
            discard(path)
        else:
            folder.remove()
        return path

    def names(self) -> list[str]:
        """The runs there are, oldest first."""
        if not self.root.is_dir():
            return []
        manifests = list(self.root.glob(f"[!.]*/{MANIFEST}"))
        return [p.parent.name for p in sorted(manifests, key=lambda p: (_born(p.parent), p))]

    def readable(self) -> tuple[list[RunFolder], list[str]]:
        """All runs that can be read, and one line for each that cannot."""
        runs, problems = [], []
        for name in self.names():
            try:
                runs.append(RunFolder(self.root / name))
            except StoreError as error:
                problems.append(str(error))
        return runs, problems

    def _make(self, path: Path, files: Mapping[str, bytes], manifest: Manifest) -> None:
        """A new run, there whole or not at all; one that another process has made stays."""
        with self._creating():
            if (path / MANIFEST).exists():
                return
            for stale in self.root.glob(f"{NEW}*"):
                shutil.rmtree(stale)
            new = self.root / f"{NEW}{path.name}"
            for name, data in {**files, MANIFEST: manifest.to_bytes()}.items():
                write_bytes(new / name, data)
            if path.exists():  # what a half-finished removal left
                shutil.rmtree(path)
            new.rename(path)
            flush_folder(self.root)

    @contextmanager
    def _creating(self) -> Iterator[None]:
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / ".lock").open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield


def _born(folder: Path) -> float:
    return (folder / CONFIG).stat().st_mtime if (folder / CONFIG).exists() else 0.0
