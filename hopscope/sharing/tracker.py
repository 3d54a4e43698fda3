"""Runs are sent to trackers after the fact, from what is kept of them: training knows no tracker.

Each tracker is a file with a class, made from a `Place`, whose `begin` finds or makes the run of
one model there. A run that is sent twice is one run: only numbers are added that are not there yet,
of a series that is there those of later steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from hopscope.configs.kinds import fetched
from hopscope.errors import SharingError
from hopscope.sharing.tracked import Row, Tracked
from hopscope.store import RunFolder


class Log(Protocol):
    """The run of one model in a tracker, open for rows."""

    last: int
    """The last step that is there; -1 if there is none."""
    where: str
    """Where it is to be seen."""

    def has(self, series: str) -> bool:
        """Are there numbers of this series?"""

    def add(self, rows: Sequence[Row]) -> None:
        """Add numbers by step, in order: after the last one, but of series that are new."""

    def close(self) -> None:
        """All is added."""


class Tracker(Protocol):
    """Where runs are sent."""

    def begin(self, run: Tracked) -> Log:
        """The run of this model: the one that is there, or a new one."""


@dataclass(frozen=True)
class Place:
    """Where in a tracker runs go."""

    project: str = "hopscope"
    to: Path | None = None
    """The folder of what is kept on this machine; None: where the tracker keeps it."""


@dataclass(frozen=True)
class Sent:
    """What came of sending one model."""

    name: str
    steps: int
    """How many steps got new numbers."""
    where: str


TRACKERS = {
    "tensorboard": "hopscope.sharing.tensorboard:TensorBoard",
    "wandb": "hopscope.sharing.wandb:Wandb",
    "trackio": "hopscope.sharing.trackio:Trackio",
    "mlflow": "hopscope.sharing.mlflow:Mlflow",
}
"""Every tracker, by the name of its format."""


def tracker(name: str, place: Place) -> Tracker:
    """The tracker of this name; its library is imported here."""
    made: Tracker = fetched(TRACKERS[name])(place)
    return made


def library(name: str) -> Any:
    """A library that only who sends runs to it has to have."""
    try:
        return import_module(name)
    except ImportError as error:
        raise SharingError(
            f"{name} is not installed ({error}): pip install 'hopscope[{name}]'"
        ) from error


def send(runs: Sequence[Tracked], to: Tracker) -> Iterator[Sent]:
    """Send what is kept of these models, one after the other."""
    check(runs)
    for run in runs:
        with closing(to.begin(run)) as log:
            yield Sent(run.name, _add(run, log), log.where)


def follow(runs: Sequence[Tracked], to: Tracker, pause: Callable[[], None]) -> Iterator[Sent]:
    """Send models of one run while they train: after each pause what is new, until the run is
    complete.
    """
    folder = runs[0].folder
    with ExitStack() as open_:
        logs = [open_.enter_context(closing(to.begin(run))) for run in runs]
        while True:
            folder.manifest = RunFolder(folder.path, folder.gallery).manifest
            complete = folder.manifest.complete
            for run, log in zip(runs, logs, strict=True):
                if steps := _add(run, log):
                    yield Sent(run.name, steps, log.where)
            if complete:
                return
            pause()


def check(runs: Sequence[Tracked]) -> None:
    """Refuse a run of which there is nothing to send."""
    if not runs[0].rows():
        raise SharingError(
            f"{runs[0].folder.name} has no numbers to send: it was not trained, or nothing is kept "
            "yet"
        )


def _add(run: Tracked, log: Log) -> int:
    """Add what is missing; at how many steps something was."""
    rows = [(step, new) for step, values in run.rows() if (new := _missing(log, step, values))]
    if rows:
        log.add(rows)
        log.last = max(log.last, rows[-1][0])
    return len(rows)


def _missing(log: Log, step: int, values: Mapping[str, float]) -> dict[str, float]:
    """The numbers of a step that are not there."""
    if step > log.last:
        return dict(values)
    return {name: value for name, value in values.items() if not log.has(name)}
