"""TensorBoard: one event file for each model, written whole each time, so that nothing is in it
twice. TensorBoard itself is not needed for it.
"""

from collections.abc import Sequence
from pathlib import Path

from hopscope.sharing.events import opening, scalars, text
from hopscope.sharing.tracked import Row, Tracked
from hopscope.sharing.tracker import Place
from hopscope.store.files import write_bytes
from hopscope.store.folder import CONFIG
from hopscope.store.writable import check_files

LOGS = Path("exports/tensorboard")


class TensorBoard:
    """A folder of logs: `tensorboard --logdir FOLDER` shows it."""

    def __init__(self, place: Place) -> None:
        self.folder = place.to or LOGS

    def begin(self, run: Tracked) -> "EventFile":
        """The file of this model; what it held before is written anew."""
        name = f"events.out.tfevents.{run.id}.hopscope"
        return EventFile(run, self.folder / run.name / name)


class EventFile:
    """The event file of one model. Its times are estimates: steps of equal length since the run was
    made.
    """

    def __init__(self, run: Tracked, path: Path) -> None:
        check_files(path)
        self.last, self.where = -1, str(path.parent)
        self._run, self._path, self._rows = run, path, bytearray()
        self._began = (run.folder.path / CONFIG).stat().st_mtime

    def add(self, rows: Sequence[Row]) -> None:
        """Write the file with all rows so far, and these."""
        manifest = self._run.folder.manifest
        each = manifest.seconds / max(1, manifest.step)
        for step, values in rows:
            self._rows += scalars(self._began + step * each, step, values)
        table = "".join(f"\n| {name} | {value} |" for name, value in self._run.settings.items())
        head = opening(self._began) + text(
            self._began, "config", f"| setting | value |\n|---|---|{table}"
        )
        write_bytes(self._path, head + bytes(self._rows))

    def close(self) -> None:
        """Each file is whole as it is."""
