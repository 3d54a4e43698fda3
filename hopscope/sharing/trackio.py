"""trackio: a small database on this machine. It knows runs by name, and one open run at a time."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

from hopscope.errors import SharingError
from hopscope.sharing.tracked import Row, Tracked
from hopscope.sharing.tracker import Place, library
from hopscope.store.files import check_folder

ELSEWHERE = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")
FOLDER = "TRACKIO_DIR"


class Trackio:
    """A project there; `trackio show` shows it."""

    def __init__(self, place: Place) -> None:
        for name in ELSEWHERE:
            if os.environ.get(name):
                raise SharingError(
                    f"{name} is set, and steps that are there already cannot be told from here: "
                    "unset it, export, and send the project with `trackio sync`"
                )
        if place.to is not None:
            check_folder(place.to)
            os.environ[FOLDER] = str(place.to)  # read when trackio is imported
        self.place, self.trackio = place, library("trackio")
        self.storage = library("trackio.sqlite_storage").SQLiteStorage

    def begin(self, run: Tracked) -> "TrackioLog":
        """The run with this model's name and hash."""
        return TrackioLog(self, run)


class TrackioLog:
    """One run there, opened anew for each portion of rows."""

    def __init__(self, home: Trackio, run: Tracked) -> None:
        self._home, self._run = home, run
        self.where = f"project {home.place.project} (`trackio show`)"
        latest = home.storage.get_max_step_for_run(home.place.project, run.name)
        self.last = -1 if latest is None else int(latest)
        logs = () if latest is None else home.storage.get_logs(home.place.project, run.name)
        self._names = {name for values in logs for name in values}

    def has(self, series: str) -> bool:
        return series in self._names

    def add(self, rows: Sequence[Row]) -> None:
        """Log each step, and wait until all is in the database."""
        with _silent():
            self._home.trackio.init(
                project=self._home.place.project,
                name=self._run.name,
                group=self._run.group,
                config=self._run.settings,
                resume="allow",
                embed=False,
                auto_log_cpu=False,
                auto_log_gpu=False,
            )
            for step, values in rows:
                self._home.trackio.log(values, step=step)
                self._names.update(values)
            self._home.trackio.finish()

    def close(self) -> None:
        """Each portion was finished."""


@contextmanager
def _silent() -> Iterator[None]:
    """The library prints what it does."""
    with redirect_stdout(io.StringIO()):
        yield
