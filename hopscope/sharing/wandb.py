"""Weights & Biases: a run's id is its hash, so that whoever sends it again goes on with it.

With WANDB_MODE=offline all stays on this machine, until `wandb sync` sends it.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hopscope.errors import SharingError, StoreError
from hopscope.sharing.tracked import Row, Tracked
from hopscope.sharing.tracker import Place, library
from hopscope.store.files import check_folder, read_bytes, write_bytes

QUIET = {
    "silent": True,
    "console": "off",
    "disable_git": True,
    "disable_code": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
    "host": "hopscope",
}
"""Only the numbers of the run leave the house: nothing is said of this machine, or printed."""


NOTE = "hopscope-step.txt"


class Wandb:
    """A project there, or on this machine with WANDB_MODE=offline."""

    def __init__(self, place: Place) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        self.place, self.wandb = place, library("wandb")
        self.folder = place.to or Path(os.environ.get("WANDB_DIR", "."))
        self.online = os.environ.get("WANDB_MODE", "online") == "online"
        if self.online and not self.wandb.login(prompt=False):
            raise SharingError(
                "wandb has no key: `wandb login`, or set WANDB_API_KEY; WANDB_MODE=offline keeps "
                "all on this machine, for `wandb sync`"
            )
        check_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def begin(self, run: Tracked) -> "Online | Offline":
        """The run with this model's hash."""
        return (Online if self.online else Offline)(self, run)

    def opened(self, run: Tracked) -> Any:
        """The run with this model's hash, as the library sees it."""
        try:
            return self.wandb.init(
                project=self.place.project,
                id=run.id,
                name=run.name,
                group=run.group,
                config=run.settings,
                dir=self.folder,
                resume="allow",
                reinit="create_new",
                settings=self.wandb.Settings(**QUIET),
            )
        except (self.wandb.errors.Error, TimeoutError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise SharingError(f"wandb refuses {run.name}: {reason}") from error


class Online:
    """One run there; it says how far it came."""

    def __init__(self, home: Wandb, run: Tracked) -> None:
        self._made = home.opened(run)
        self.last = self._made.step - 1 if self._made.resumed else -1
        self._names = {name for name in self._made.summary.keys() if name[0] != "_"}  # noqa: SIM118  (not a dict)
        self.where = str(self._made.url)

    def has(self, series: str) -> bool:
        return not self._names or series in self._names

    def add(self, rows: Sequence[Row]) -> None:
        """Log each step."""
        _check(rows, self.last)
        for step, values in rows:
            self._made.log(values, step=step)
        self._names.update(name for _, values in rows for name in values)

    def close(self) -> None:
        """Wait until all has gone out."""
        self._made.finish()


class Offline:
    """One run on this machine. The library writes each portion to a folder of its own, and knows
    nothing of earlier ones: in each we note how far it goes, and of which series.
    """

    def __init__(self, home: Wandb, run: Tracked) -> None:
        self._home, self._run = home, run
        self._made: Any = None
        noted = sorted((home.folder / "wandb").glob(f"offline-run-*-{run.id}/{NOTE}"))
        known = [_noted(note) for note in noted]
        self.last = max((last for last, _ in known), default=-1)
        self._names = {name for _, names in known for name in names}
        self.where = f"{noted[-1].parent}" if noted else ""

    def has(self, series: str) -> bool:
        return not self._names or series in self._names

    def add(self, rows: Sequence[Row]) -> None:
        """Log each step."""
        _check(rows, self.last)
        if self._made is None:
            self._made = self._home.opened(self._run)
            self.where = str(Path(self._made.dir).parent)
        for step, values in rows:
            self._made.log(values, step=step)
        self._names.update(name for _, values in rows for name in values)

    def close(self) -> None:
        """Wait until all is written, and note how far."""
        if self._made is not None:
            self._made.finish()
            note = "\n".join([str(self.last), *sorted(self._names)])
            write_bytes(Path(self.where) / NOTE, note.encode())


def _check(rows: Sequence[Row], last: int) -> None:
    """Refuse steps up to the last one, which wandb would lose."""
    early = sorted({name for step, values in rows if step <= last for name in values})
    if early:
        raise SharingError(
            f"wandb takes only steps after {last:,} now, and {early[0]} was not sent before: "
            "remove the run there and export it again, or choose another --project"
        )


def _noted(note: Path) -> tuple[int, list[str]]:
    """How far a portion goes, and the series in it."""
    try:
        last, *names = read_bytes(note).decode().splitlines()
        return int(last), names
    except (StoreError, ValueError) as error:
        raise SharingError(
            f"{note} does not say up to which step its portion goes: write that number into it, or "
            f"remove {note.parent} to send all of it again"
        ) from error
