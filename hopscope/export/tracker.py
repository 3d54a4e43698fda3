"""Send runs to trackers, from the files of a run; training itself uses no tracker.

For each tracker one function opens the model's run there, by the tracker's own client, and finds
the last step of each series. Sending a run again adds only missing numbers: later steps, and all
steps of new series. Nothing is sent before `send` or `send_while_training` is called.
"""

import io
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from shlex import join, quote
from typing import Any

from hopscope.errors import RunMissing, SharingError
from hopscope.export.tracked import StepNumbers, Tracked
from hopscope.extras import install_extra
from hopscope.store import RunFolder
from hopscope.store.files import check_folder, read_bytes, write_bytes, writing


@dataclass(frozen=True)
class Place:
    """The destination of runs in a tracker."""

    project: str = "hopscope"
    to: Path | None = None
    """The folder for files on this machine (None: the tracker's default)."""


@dataclass
class Log:
    """The open run of one model in a tracker."""

    add: Callable[[Sequence[StepNumbers]], None]
    """Adds rows, which are in the order of their steps."""
    where: Callable[[], str]
    """Returns where the run can be seen."""
    last: dict[str, int] = field(default_factory=dict)
    """The last step of each series in the tracker, by the tracker's name of the series."""
    named: Callable[[str], str] = str
    """Converts the name of a series to the tracker's name."""


@dataclass(frozen=True)
class Sent:
    """The result of sending one model."""

    name: str
    steps: int
    """The number of steps with new numbers."""
    where: str


Tracker = Callable[[Tracked], AbstractContextManager[Log]]
"""Opens the run of a model in a tracker: the existing one, or a new one."""


def tracker(name: str, place: Place) -> Tracker:
    """Return the tracker of this name; raises SharingError if its package is not installed."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_FINISH_TIMEOUT", "600")  # seconds
    os.environ.setdefault("WANDB_FINISH_TIMEOUT_RAISES", "true")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    if not place.project.strip(". "):
        raise SharingError(f"project is {place.project!r}; expected a name, such as hopscope")
    if place.to is not None:
        check_folder(place.to)
        os.environ["TRACKIO_DIR"] = str(place.to)  # trackio reads it when it is imported
    return partial(TRACKERS[name], place, tracker_package(name))


def tracker_package(name: str) -> Any:
    """Import the package of a tracker (an extra of hopscope); raises SharingError."""
    try:
        return import_module(name)
    except ImportError as error:
        raise SharingError(f"{name} is not installed ({error}): {install_extra(name)}") from error


def send(runs: Sequence[Tracked], to: Tracker) -> Iterator[Sent]:
    """Send the numbers of these models so far, one model after the other."""
    if not runs[0].rows():
        raise SharingError(
            f"{runs[0].folder.name} has no numbers to send yet: a training has some from its first "
            "commit on, the circuit of a language model when all is measured"
        )
    for run in runs:
        with to(run) as log:
            steps = _add(run, log)
        yield Sent(run.name, steps, log.where())  # after closing, the tracker has all numbers


def send_while_training(
    runs: Sequence[Tracked], to: Tracker, pause: Callable[[], None]
) -> Iterator[Sent]:
    """Send new numbers of one run's models after each pause, until the run is complete."""
    folder = runs[0].folder
    with ExitStack() as open_:
        logs = [open_.enter_context(to(run)) for run in runs]
        while True:
            try:
                folder.manifest = RunFolder(folder.path, folder.gallery).manifest
            except RunMissing as error:
                why = "split into runs of its seeds: export these" if folder.packed else "removed"
                raise RunMissing(f"{folder.name} was {why}") from error
            complete = folder.manifest.complete
            for run, log in zip(runs, logs, strict=True):
                if steps := _add(run, log):
                    yield Sent(run.name, steps, log.where())
            if complete:
                return
            pause()


def _add(run: Tracked, log: Log) -> int:
    """Add the missing numbers; return how many steps have any."""
    rows = [(step, new) for step, values in run.rows() if (new := _missing(log, step, values))]
    if rows:
        log.add(rows)
        log.last |= {log.named(name): step for name, step in _last(rows).items()}
    return len(rows)


def _missing(log: Log, step: int, values: Mapping[str, float]) -> dict[str, float]:
    last = {name: log.last.get(log.named(name), -1) for name in values}
    return {name: value for name, value in values.items() if step > last[name]}


def _last(rows: Iterable[tuple[int, Iterable[str]]]) -> dict[str, int]:
    """Return the last step of each series in these rows."""
    return {name: step for step, names in sorted(rows, key=itemgetter(0)) for name in names}


LOGS = Path("exports/tensorboard")


@contextmanager
def tensorboard(place: Place, _: Any, run: Tracked) -> Iterator[Log]:
    """Open a folder of TensorBoard for a model; new numbers become another event file in it."""
    from torch.utils.tensorboard.writer import SummaryWriter

    folder = (place.to or LOGS) / run.name
    check_folder(folder)
    events = import_module("tensorboard.backend.event_processing.event_accumulator")
    known = events.EventAccumulator(str(folder), {"scalars": 1}) if folder.is_dir() else None
    tags = known.Reload().Tags()["scalars"] if known else []
    last = {tag: known.Scalars(tag)[-1].step for tag in tags} if known else {}

    def add(rows: Sequence[StepNumbers]) -> None:
        with writing(folder), _silent_threads(), SummaryWriter(folder) as writer:
            if not log.last:
                table = "".join(f"\n| {name} | {value} |" for name, value in run.settings.items())
                writer.add_text("config", f"| setting | value |\n|---|---|{table}", 0, run.time(0))
            for step, values in rows:
                for name, value in values.items():
                    writer.add_scalar(name, value, step, run.time(step))

    log = Log(add, lambda: str(folder), last)
    yield log


@contextmanager
def _silent_threads() -> Iterator[None]:
    """Print no tracebacks of threads: the writer raises the error of its thread again."""
    before, threading.excepthook = threading.excepthook, lambda _: None
    try:
        yield
    finally:
        threading.excepthook = before


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
"""Settings of wandb: send only the run's numbers, nothing about this machine, and print nothing."""


@contextmanager
def wandb(place: Place, library: Any, run: Tracked) -> Iterator[Log]:
    """Open a run of Weights & Biases whose id is the run's hash.

    The x axis of its charts is our step, not wandb's own step, which can only rise; so a series may
    be added later than others. With WANDB_MODE=offline every call with new numbers writes a new
    folder on this machine, for `wandb sync`.
    """
    home, online = _wandb_home(place, library, run)
    note = f"hopscope-{run.id}.json"  # in an offline folder: the last step of each series
    made = _wandb_run(place, library, run, home) if online else None
    where, last = str(made.url) if made else "", {}
    ended = False
    try:
        with _refusals("wandb", run, (library.errors.Error, ValueError)):
            if made and made.resumed:
                rows = library.Api().run(made.path).scan_history()
                last = _last((row["step"], row) for row in rows if "step" in row)
            notes = sorted((home / "wandb").glob(f"offline-run-*/{note}"))
            if not online and notes:
                last, where = json.loads(read_bytes(notes[-1])), str(notes[-1].parent)

        def add(rows: Sequence[StepNumbers]) -> None:
            nonlocal made, where
            if made is None:  # offline: the first new numbers open a new folder
                made = _wandb_run(place, library, run, home)
                where = str(Path(made.dir).parent)
            for step, values in rows:
                made.log({"step": step, **values})

        log = Log(add, lambda: where, last)
        yield log
        ended = True
    finally:
        if made:
            # An earlier error is more important than one of finish.
            with writing(home), suppress(*(() if ended else (SharingError,))):
                _finish_wandb(made, run)
            if not online:
                write_bytes(Path(where) / note, json.dumps(log.last).encode())


def _finish_wandb(made: Any, run: Tracked) -> None:
    """Wait until all is sent; raises SharingError after WANDB_FINISH_TIMEOUT."""
    try:
        made.finish()
    except TimeoutError as error:
        raise SharingError(
            f"wandb did not take all of {run.name} in time: check the connection, and export again "
            "(WANDB_FINISH_TIMEOUT=SECONDS waits longer)"
        ) from error


def _wandb_home(place: Place, library: Any, run: Tracked) -> tuple[Path, bool]:
    """Return wandb's folder on this machine, and whether numbers are sent to its server."""
    home = place.to or Path(os.environ.get("WANDB_DIR", "."))
    mode = os.environ.get("WANDB_MODE", "online")
    if mode not in ("online", "offline"):
        raise SharingError(
            f"WANDB_MODE is {mode}; expected online, or offline, which writes to this machine"
        )
    online = mode == "online"
    with _refusals("wandb", run, (library.errors.Error, OSError, ValueError)):
        known = not online or library.login(prompt=False)
    if not known:
        raise SharingError(
            "wandb has no key: `wandb login`, or set WANDB_API_KEY; WANDB_MODE=offline writes to "
            "this machine, for `wandb sync`"
        )
    check_folder(home)
    _make_folder(home)
    return home, online


def _wandb_run(place: Place, library: Any, run: Tracked, home: Path) -> Any:
    with _refusals("wandb", run, (library.errors.Error, OSError)):
        made = library.init(
            project=place.project, id=run.id, name=run.name, group=run.group, config=run.settings,
            dir=home, resume="allow", reinit="create_new", settings=library.Settings(**QUIET),
        )  # fmt: skip
    made.define_metric("step")
    made.define_metric("*", step_metric="step")
    return made


@contextmanager
def trackio(place: Place, library: Any, run: Tracked) -> Iterator[Log]:
    """Open a run in the local database of trackio, whose calls are those of wandb.

    trackio has only one open run at a time, so each call of `add` opens and finishes the run.
    """
    for name in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        if os.environ.get(name):
            raise SharingError(
                f"{name} is set, and which steps are there cannot be read from here: unset it, "
                "export, and send the project with `trackio sync`"
            )

    def stored() -> list[dict[str, Any]]:
        known = storage.get_max_step_for_run(place.project, run.name) is not None
        return list(storage.get_logs(place.project, run.name)) if known else []

    def add(rows: Sequence[StepNumbers]) -> None:
        before = len(stored())
        with redirect_stdout(io.StringIO()):
            library.init(
                project=place.project, name=run.name, group=run.group, config=run.settings,
                resume="allow", embed=False, auto_log_cpu=False, auto_log_gpu=False,
            )  # fmt: skip
            for step, values in rows:
                library.log(values, step=step)
            library.finish()
        if len(stored()) < before + len(rows):  # trackio's thread only warns if it cannot write
            raise SharingError(
                f"trackio did not store all of {run.name}: free space on the disk, or choose "
                "another folder with --save, and export again"
            )

    storage = import_module("trackio.sqlite_storage").SQLiteStorage
    last = _last((row["step"], row) for row in stored())
    command = join(["trackio", "show", "--project", place.project])
    folder = "" if place.to is None else f"TRACKIO_DIR={quote(str(place.to))} "
    yield Log(add, lambda: f"`{folder}{command}` shows it", last)


HASH = "hopscope.hash"
"""The tag that identifies a run in MLflow."""
AT_ONCE, LONGEST = 1_000, 500
"""MLflow's limits: numbers in one request, and characters of a setting."""


@contextmanager
def mlflow(place: Place, library: Any, run: Tracked) -> Iterator[Log]:
    """Open a run of MLflow, in a database in the folder, or as MLflow's own settings say."""
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    uri = None
    if place.to is not None:
        _make_folder(place.to)
        uri = f"sqlite:///{place.to.resolve()}/mlflow.db"
    entities = import_module("mlflow.entities")
    refusals = partial(_refusals, "mlflow", run, _mlflow_errors(library))

    def milliseconds(step: int) -> int:
        return int(run.time(step) * 1e3)

    with refusals():
        client = library.MlflowClient(tracking_uri=uri)
        there = client.get_experiment_by_name(place.project)
        experiment = there.experiment_id if there else client.create_experiment(place.project)
        runs = client.search_runs([experiment], f"tags.`{HASH}` = '{run.id}'", max_results=1)
        if not runs:
            tags = {HASH: run.id, **({"hopscope.group": run.group} if run.group else {})}
            runs = [client.create_run(experiment, milliseconds(0), tags, run.name)]
            settings = [entities.Param(n, str(v)[:LONGEST]) for n, v in run.settings.items()]
            client.log_batch(runs[0].info.run_id, params=settings)
        number = runs[0].info.run_id
        last = {
            name: max(metric.step for metric in client.get_metric_history(number, name))
            for name in runs[0].data.metrics
        }

    def add(rows: Sequence[StepNumbers]) -> None:
        numbers = [
            entities.Metric(metric_name(name), value, milliseconds(step), step)
            for step, values in rows
            for name, value in values.items()
        ]
        with refusals():
            for start in range(0, len(numbers), AT_ONCE):
                client.log_batch(number, metrics=numbers[start : start + AT_ONCE])

    yield Log(add, lambda: uri or library.get_tracking_uri(), last, metric_name)
    if run.folder.manifest.complete:
        with refusals():
            client.set_terminated(number, end_time=milliseconds(run.folder.manifest.step))


def _mlflow_errors(library: Any) -> tuple[type[BaseException], ...]:
    """Return the errors that MLflow raises (mlflow-skinny has no sqlalchemy: it needs a server)."""
    kinds = (library.exceptions.MlflowException, ImportError, OSError)
    with suppress(ImportError):
        return (*kinds, import_module("sqlalchemy.exc").SQLAlchemyError)
    return kinds


def metric_name(name: str) -> str:
    """Return the name in the characters that MLflow allows.

    >>> metric_name("attention/0.1/key 0→value 0"), metric_name("parameters/c{1,2}")
    ('attention/0.1/key 0 to value 0', 'parameters/c_1_2')
    """
    return re.sub(r"[^\w./ -]+", "_", name.replace("→", " to ")).rstrip("_")


def _make_folder(path: Path) -> None:
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def _refusals(name: str, run: Tracked, kinds: tuple[type[BaseException], ...]) -> Iterator[None]:
    """Turn errors of a tracker's library within this block into SharingError with one line."""
    try:
        yield
    except kinds as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SharingError(f"{name} refuses {run.name}: {reason[:200]}") from error


TRACKERS: Mapping[str, Callable[[Place, Any, Tracked], AbstractContextManager[Log]]] = {
    "tensorboard": tensorboard,
    "wandb": wandb,
    "trackio": trackio,
    "mlflow": mlflow,
}
"""Every tracker, by its name, which is also the name of its package and its extra."""
