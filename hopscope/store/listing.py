"""What there is in a store: the state, date, size and tags of every run, without its numbers."""

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hopscope.errors import RunMissing, StoreError
from hopscope.store.folder import RunFolder, files_in
from hopscope.store.manifest import MANIFEST

State = Literal["complete", "in training", "stopped", "damaged"]


@dataclass(frozen=True)
class Listed:
    """A run as a list shows it."""

    name: str
    state: State
    date: datetime | None
    """The time of its last commit; None where its manifest cannot be looked at, or has no date."""
    size: int
    """Bytes of all files in its folder: what removing it would free."""
    tags: tuple[str, ...] = ()
    folder: RunFolder | None = None
    """The run itself, unless it is damaged."""
    problem: str = ""
    """What is wrong with a damaged one, in one line."""

    @property
    def step(self) -> int | None:
        """The step that the run has reached; None if the run is damaged."""
        return None if self.folder is None else self.folder.manifest.step

    @property
    def steps(self) -> int | None:
        """The step at which the run is complete; None if the run is damaged."""
        return None if self.folder is None else self.folder.recipe.steps

    @property
    def told(self) -> str:
        """The state of the run in words, with its step if it is not complete."""
        if self.folder is None or self.state == "complete":
            return self.state
        unit = self.folder.recipe.unit
        return f"{self.state} at {unit} {self.step:,} of {self.steps:,}"

    def to_dict(self) -> dict[str, Any]:
        """The run as a dictionary of plain values, ready for JSON."""
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
    """One run of a store, which is a RunMissing if it was removed meanwhile."""
    date, size = committed(path), _size(path)
    try:
        folder = RunFolder(path)
        folder.steadily(lambda: folder.paths(""))
    except RunMissing:
        raise
    except StoreError as error:
        return Listed(path.name, "damaged", date, size, tags, problem=str(error))
    return Listed(path.name, state_of(folder), date, size, tags, folder)


def state_of(folder: RunFolder) -> State:
    """The state of a run whose files are there."""
    if folder.manifest.complete:
        return "complete"
    return "in training" if folder.in_training() else "stopped"


def committed(path: Path) -> datetime | None:
    """When the run's last commit was: its manifest is written then, and at no other time."""
    try:
        return datetime.fromtimestamp((path / MANIFEST).lstat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):  # of a year that no calendar has
        return None


def _size(path: Path) -> int:
    """Bytes of the files in a folder; those that go away meanwhile count for nothing."""
    total = 0
    with suppress(StoreError):  # of a folder that may not be looked into nothing is known
        for name in files_in(path):
            with suppress(OSError):
                total += os.lstat(f"{path}{os.sep}{name}").st_size
    return total
