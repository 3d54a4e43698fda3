"""The entries of a list of runs: state, date, size and tags."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hopscope.errors import RunMissing, StoreError
from hopscope.store.folder import RunFolder, file_sizes
from hopscope.store.manifest import MANIFEST

State = Literal["complete", "in training", "stopped", "damaged"]


@dataclass(frozen=True)
class Listed:
    """A run in a list."""

    name: str
    state: State
    date: datetime | None
    """Time of the last commit; None if the manifest cannot be read, or has no valid date."""
    size: int
    """Bytes of all files in the run's folder."""
    tags: tuple[str, ...] = ()
    folder: RunFolder | None = None
    """The run itself, unless it is damaged."""
    problem: str = ""
    """One line on the damage; empty if the run is not damaged."""

    @property
    def step(self) -> int | None:
        """The step that the run has reached; None if it is damaged."""
        return None if self.folder is None else self.folder.manifest.step

    @property
    def steps(self) -> int | None:
        """The step at which the run is complete; None if it is damaged."""
        return None if self.folder is None else self.folder.recipe.steps

    @property
    def status(self) -> str:
        """The state of the run in words, with its step if it is not complete."""
        if self.folder is None or self.state == "complete":
            return self.state
        unit = self.folder.recipe.unit
        return f"{self.state} at {unit} {self.step:,} of {self.steps:,}"

    def to_dict(self) -> dict[str, Any]:
        """The run as plain values, ready for JSON."""
        return {
            "name": self.name,
            "state": self.state,
            "step": self.step,
            "steps": self.steps,
            "date": None if self.date is None else self.date.isoformat(timespec="seconds"),
            "bytes": self.size,
            "tags": list(self.tags),
            "problem": self.problem,
        }


def listed(path: Path, tags: tuple[str, ...] = ()) -> Listed:
    """Return the list entry of one run; raises RunMissing if it was removed meanwhile."""
    date, sizes = committed(path), dict[str, int]()
    with suppress(StoreError):  # an unreadable folder
        sizes = file_sizes(path)
    size = sum(sizes.values())
    try:
        folder = RunFolder(path)
        files = folder.manifest.files
        if any(sizes.get(entry.at or name) != entry.size for name, entry in files.items()):
            folder.snapshot(lambda: folder.paths(""))
    except RunMissing:
        raise
    except StoreError as error:
        return Listed(path.name, "damaged", date, size, tags, problem=str(error))
    return Listed(path.name, state_of(folder), date, size, tags, folder)


def state_of(folder: RunFolder) -> State:
    """Return the state of an undamaged run."""
    if folder.manifest.complete:
        return "complete"
    return "in training" if folder.in_training() else "stopped"


def committed(path: Path) -> datetime | None:
    """Return the time of the run's last commit (the manifest's); None if it has no valid time."""
    try:
        return datetime.fromtimestamp((path / MANIFEST).lstat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):  # a time out of datetime's range
        return None
