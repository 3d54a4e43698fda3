"""TensorBoard: one event file for each model, in which every step is once: what is new is added at
its end, where a TensorBoard that is open reads on. TensorBoard itself is not needed for it.
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hopscope.sharing.events import Record, begun, opening, scalars, text
from hopscope.sharing.tracked import Row, Tracked
from hopscope.sharing.tracker import Place
from hopscope.store.files import check_files, read_bytes, write_bytes, writing
from hopscope.store.folder import CONFIG

LOGS = Path("exports/tensorboard")


class TensorBoard:
    """A folder of logs: `tensorboard --logdir FOLDER` shows it."""

    def __init__(self, place: Place) -> None:
        self.folder = place.to or LOGS

    def begin(self, run: Tracked) -> "EventFile":
        """The file of this model; what it holds already, stays."""
        name = f"events.out.tfevents.{run.id}.hopscope"
        return EventFile(run, self.folder / run.name / name)


class EventFile:
    """The event file of one model. Its times are estimates: steps of equal length since the run was
    made.
    """

    def __init__(self, run: Tracked, path: Path) -> None:
        check_files(path)
        self.last, self.where = -1, str(path.parent)
        self._run, self._path, self._ours = run, path, False
        self._began = (run.folder.path / CONFIG).stat().st_mtime

    def has(self, series: str) -> bool:  # noqa: ARG002  (a file is compared as a whole)
        return True

    def add(self, rows: Sequence[Row]) -> None:
        """Add these rows. A file that holds anything but the first of them is written anew."""
        manifest = self._run.folder.manifest
        each = manifest.seconds / max(1, manifest.step)
        records: list[tuple[float, Record]] = [
            (self._began + step * each, partial(scalars, step=step, values=values))
            for step, values in rows
        ]
        if not self._ours:
            table = "".join(f"\n| {name} | {value} |" for name, value in self._run.settings.items())
            told = partial(text, name="config", content=f"| setting | value |\n|---|---|{table}")
            records = [(self._began, opening), (self._began, told), *records]
            data = read_bytes(self._path) if self._path.is_file() else b""
            known = begun(data, [make for _, make in records])
            if not known:
                write_bytes(self._path, b"".join(make(time) for time, make in records))
            records, self._ours = records[known:] if known else [], True
        self._append(b"".join(make(time) for time, make in records))

    def _append(self, data: bytes) -> None:
        """Add records to the file as it is: who reads it knows no other."""
        with writing(self._path), self._path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Each file is whole as it is."""
