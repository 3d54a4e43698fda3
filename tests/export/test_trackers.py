"""One contract of all trackers: every number arrives once, however often a run is sent.

TensorBoard and offline wandb are the real packages; the others are small stand-ins that take and
refuse what the services do.
"""

import errno
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hopscope.configs.kinds import KINDS
from hopscope.errors import RunMissing, SharingError, StoreUnwritable
from hopscope.export.tracked import StepNumbers, Tracked, tracked
from hopscope.export.tracker import TRACKERS, Place, send, send_while_training, tracker
from hopscope.store import RunFolder
from hopscope.store.folder import discard
from hopscope.store.manifest import PACKED

Record = Callable[[RunFolder, int, int], None]
Numbers = dict[tuple[int, str], float]


def flat(rows: Sequence[StepNumbers]) -> Numbers:
    return {(step, name): value for step, values in rows for name, value in values.items()}


class Refused(Exception):
    """What the libraries raise."""


class Full(Exception):
    """What the database below MLflow raises."""


class Wandb:
    """Runs by id, online; wandb's own step only rises, ours is a number like others."""

    def __init__(self) -> None:
        self.runs: dict[str, list[dict[str, float]]] = {}
        self.asked: list[dict[str, Any]] = []
        self.key: bool | None = True  # None: a wrong one
        self.refuses, self.silent, self.open = False, False, 0
        self.errors = SimpleNamespace(Error=Refused)
        self.Settings = dict

    def login(self, prompt: bool) -> bool:
        assert not prompt
        if self.key is None:
            raise Refused("the key is wrong\nmore")
        return self.key

    def init(self, **fields: Any) -> Any:
        assert (fields["resume"], fields["reinit"]) == ("allow", "create_new")
        if self.refuses:
            raise Refused("permission denied\nmore")
        self.asked.append(fields)
        self.open += 1
        resumed, rows = fields["id"] in self.runs, self.runs.setdefault(fields["id"], [])
        axes: dict[str, str | None] = {}
        made = SimpleNamespace(
            url="https://wandb.example/run", path=f"me/mine/{fields['id']}", resumed=resumed,
            define_metric=lambda name, step_metric=None: axes.update({name: step_metric}),
        )  # fmt: skip

        def log(values: dict[str, float]) -> None:
            assert axes == {"step": None, "*": "step"}
            rows.append(values)

        def finish() -> None:
            self.open -= 1
            if self.silent and os.environ["WANDB_FINISH_TIMEOUT_RAISES"] == "true":
                raise TimeoutError("Timed out finishing run.")

        made.log, made.finish = log, finish
        return made

    def Api(self) -> Any:  # noqa: N802
        def run(path: str) -> Any:
            rows = self.runs[path.removeprefix("me/mine/")]
            return SimpleNamespace(scan_history=lambda: iter(rows))

        return SimpleNamespace(run=run)

    def numbers(self, run: Tracked) -> Numbers:
        return once((int(row["step"]), row) for row in self.runs[run.id])


class Trackio:
    """Runs by name, one open at a time; what is logged is kept when the run is finished."""

    def __init__(self) -> None:
        self.runs: dict[str, list[StepNumbers]] = {}
        self.asked: dict[str, Any] = {}
        self.waiting: list[StepNumbers] = []
        self.full, self.open = False, 0

    def init(self, **fields: Any) -> None:
        assert (fields["resume"], fields["embed"], self.open) == ("allow", False, 0)
        print("* Created new run")
        self.asked, self.waiting, self.open = fields, [], 1

    def log(self, values: dict[str, float], step: int) -> None:
        self.waiting.append((step, values))

    def finish(self) -> None:
        stored = [] if self.full else self.waiting
        self.runs.setdefault(self.asked["name"], []).extend(stored)
        self.open = 0

    def get_logs(self, project: str, run: str) -> list[dict[str, float]]:
        return [{**values, "step": step} for step, values in self.runs[run]]

    def get_max_step_for_run(self, project: str, run: str) -> int | None:
        assert project == "mine"
        return max((step for step, _ in self.runs.get(run, [])), default=None)

    def numbers(self, run: Tracked) -> Numbers:
        return once(self.runs[run.name])


class Mlflow:
    """Experiments, runs with tags, and numbers by name and step."""

    def __init__(self) -> None:
        self.runs: dict[str, SimpleNamespace] = {}
        self.uri: str | None = None
        self.down_after, self.open = 10**9, 0
        self.error: type[Exception] = Refused
        self.exceptions = SimpleNamespace(MlflowException=Refused)

    def MlflowClient(self, tracking_uri: str | None) -> "Mlflow":  # noqa: N802
        self.uri = tracking_uri
        return self

    def get_tracking_uri(self) -> str:
        return "http://here"

    def get_experiment_by_name(self, name: str) -> SimpleNamespace | None:
        return SimpleNamespace(experiment_id="7") if self.runs else None

    def create_experiment(self, name: str) -> str:
        return "7"

    def search_runs(self, experiments: list[str], query: str, max_results: int) -> list[Any]:
        found = re.fullmatch(r"tags\.`hopscope\.hash` = '([\w-]+)'", query)
        assert found
        assert experiments == ["7"]
        return [r for r in self.runs.values() if r.data.tags["hopscope.hash"] == found[1]]

    def create_run(self, experiment: str, start: int, tags: dict[str, str], run_name: str) -> Any:
        data = SimpleNamespace(tags=tags, metrics={}, times={})
        info = SimpleNamespace(run_id=run_name, start=start, end=None)
        self.runs[run_name] = SimpleNamespace(info=info, data=data, told={}, params={})
        return self.runs[run_name]

    def log_batch(self, name: str, metrics: Any = (), params: Any = ()) -> None:
        assert len(metrics) <= 1000
        self.down_after -= 1
        if self.down_after < 0:
            raise self.error("no answer\nfrom there")
        run = self.runs[name]
        for key, value, time, step in metrics:
            run.data.times[step] = time
            assert re.fullmatch(r"[/\w.\- :]+", key)
            assert (step, key) not in run.told
            run.told[step, key] = run.data.metrics[key] = value
        run.params |= dict(params)

    def get_metric_history(self, name: str, key: str) -> list[Any]:
        told = self.runs[name].told
        return [SimpleNamespace(step=step) for step, found in told if found == key]

    def set_terminated(self, name: str, end_time: int) -> None:
        self.runs[name].info.end = end_time

    def numbers(self, run: Tracked) -> Numbers:
        return self.runs[run.name].told


class Events:
    """The folder of event files, as TensorBoard reads them."""

    open = 0

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, run: Tracked) -> Any:
        events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
        sizes = {"scalars": 0, "tensors": 0}
        return events.EventAccumulator(str(self.folder / run.name), sizes).Reload()

    def numbers(self, run: Tracked) -> Numbers:
        found = self.read(run)
        tags = found.Tags()["scalars"]
        return once((e.step, {tag: e.value}) for tag in tags for e in found.Scalars(tag))


def once(rows: Any) -> Numbers:
    """The numbers in these rows; none may be there twice."""
    told = [((step, name), v) for step, row in rows for name, v in row.items() if name != "step"]
    assert len(dict(told)) == len(told)
    return dict(told)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("mine", tmp_path / "kept")


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Wandb:
    made = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", made)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return made


@pytest.fixture
def trackio(monkeypatch: pytest.MonkeyPatch) -> Trackio:
    made = Trackio()
    monkeypatch.setitem(sys.modules, "trackio", made)
    storage = SimpleNamespace(SQLiteStorage=made)
    monkeypatch.setitem(sys.modules, "trackio.sqlite_storage", storage)
    monkeypatch.setenv("TRACKIO_DIR", "")
    return made


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Mlflow:
    made = Mlflow()
    plain = SimpleNamespace(Metric=lambda *fields: fields, Param=lambda *f: f)
    monkeypatch.setitem(sys.modules, "mlflow", made)
    monkeypatch.setitem(sys.modules, "mlflow.entities", plain)
    errors = SimpleNamespace(SQLAlchemyError=Full)
    monkeypatch.setitem(sys.modules, "sqlalchemy.exc", errors)
    return made


@pytest.fixture
def tensorboard(place: Place) -> Events:
    pytest.importorskip("tensorboard")
    return Events(place.to)


@pytest.fixture(params=[*TRACKERS])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def there(name: str, request: pytest.FixtureRequest) -> Any:
    """What stands for the library of each tracker."""
    return request.getfixturevalue(name)


def late(run: Tracked, known: int) -> list[Any]:
    """Attention of an emergence that is kept after the run was sent."""
    return [("attention/0.1/late", [0, 4], [0.5, 0.25])]


LATER = replace(KINDS["facts"], series=(*KINDS["facts"].series, f"{__name__}:late"))
"""A run that has one series more."""


def test_every_number_arrives_once_however_a_run_is_followed_or_sent_again(
    empty: RunFolder, record: Record, there: Any, name: str, place: Place,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    portions = [(0, 2), (3, 6)]

    def pause() -> None:
        """Another process trains it meanwhile."""
        record(RunFolder(empty.path), *portions.pop(0))

    sent = list(send_while_training(tracked(empty), tracker(name, place), pause))
    assert [each.steps for each in sent] == [3, 3, 4, 4]
    runs = tracked(RunFolder(empty.path))
    sent = list(send(runs, tracker(name, place)))
    assert [(each.steps, bool(each.where)) for each in sent] == [(0, True)] * 2
    monkeypatch.setitem(KINDS, "facts", LATER)
    assert [s.steps for _ in range(2) for s in send(runs, tracker(name, place))] == [2, 2, 0, 0]
    assert all(there.numbers(run) == flat(run.rows()) for run in runs)
    assert there.numbers(runs[0])[4, "attention/0.1/late"] == 0.25
    assert (there.open, capsys.readouterr().out) == (0, "")


def test_offline_wandb_gets_what_is_new_and_needs_no_network(
    fleet: RunFolder, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    runs = tracked(fleet)[:1]
    (first,), (again,) = (list(send(runs, tracker("wandb", place))) for _ in range(2))
    assert (first.steps, again.steps, first.where) == (7, 0, again.where)
    assert package.setup().settings.finish_timeout_raises  # it knows the setting
    monkeypatch.setitem(KINDS, "facts", LATER)
    (later,) = send(runs, tracker("wandb", place))
    portions = [next(Path(each.where).glob("*.wandb")).read_bytes() for each in (first, later)]
    assert [b"train/loss/x1" in data for data in portions] == [True, False]
    assert [b"attention/0.1/late" in data for data in portions] == [False, True]
    next(Path(later.where).glob("hopscope-*.json")).write_text("")
    with pytest.raises(SharingError, match="wandb refuses "):
        list(send(runs, tracker("wandb", place)))


def test_settings_and_groups_are_sent_along(
    fleet: RunFolder, wandb: Wandb, trackio: Trackio, mlflow: Mlflow, tensorboard: Events,
    place: Place,
) -> None:  # fmt: skip
    runs = tracked(fleet)
    for name in TRACKERS:
        list(send(runs, tracker(name, place)))
    (where, _) = (each.where for each in send(runs, tracker("trackio", place)))
    assert where == f"`TRACKIO_DIR={place.to} trackio show --project mine` shows it"
    for asked in (wandb.asked[-1], trackio.asked):
        assert (asked["project"], asked["group"]) == ("mine", fleet.name)
        assert asked["config"] == runs[1].settings
    assert wandb.asked[0]["settings"]["disable_git"]
    found = mlflow.runs[runs[1].name]
    assert found.params["model.layers"] == "2"
    begun, manifest = fleet.path.joinpath("config.json").stat().st_mtime, fleet.manifest
    begin, end = int(begun * 1e3), int((begun + manifest.seconds) * 1e3)
    assert (found.info.start, found.info.end) == (begin, end)
    assert found.data.times[manifest.step] == end
    assert found.data.tags["hopscope.group"] == fleet.name
    events = tensorboard.read(runs[0])
    (tag,) = events.Tags()["tensors"]
    assert b"| model.layers | 2 |" in events.Tensors(tag)[0].tensor_proto.string_val[0]


def test_interrupted_or_refused_a_run_goes_on_where_it_stopped(
    demo: RunFolder, empty: RunFolder, mlflow: Mlflow, wandb: Wandb, place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    runs = tracked(demo)
    for mlflow.error, mlflow.down_after in ((Refused, 3), (Full, 0)):  # settings, two portions
        with pytest.raises(SharingError, match="mlflow refuses gallery-demo-.*: no answer$"):
            list(send(runs, tracker("mlflow", place)))
    monkeypatch.setitem(sys.modules, "sqlalchemy.exc", None)  # mlflow-skinny has none
    mlflow.down_after = 10**9
    (sent,) = send(runs, tracker("mlflow", place))
    assert 0 < sent.steps < 2501
    steps = [step for step, name in mlflow.numbers(runs[0]) if name == "train/loss/x1"]
    assert steps == list(range(1, 2501))
    assert mlflow.uri == f"sqlite:///{place.to}/mlflow.db"

    def pause() -> None:
        assert wandb.open == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(send_while_training(tracked(empty), tracker("wandb", place), pause))
    assert wandb.open == 0


def test_a_fleet_that_is_split_meanwhile_is_said(
    empty: RunFolder, record: Record, wandb: Wandb, place: Place
) -> None:
    with empty.locked():
        empty.commit({PACKED: b"{}"})
    record(empty, 0, 3)
    sent = send_while_training(tracked(empty), tracker("wandb", place), lambda: discard(empty.path))
    with pytest.raises(RunMissing, match="was split into runs of its seeds: export these"):
        list(sent)
    assert wandb.open == 0


def test_what_cannot_be_sent_is_refused_in_one_line(
    fleet: RunFolder, empty: RunFolder, wandb: Wandb, trackio: Trackio, place: Place,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def refused(run: RunFolder, name: str, reason: str) -> None:
        with pytest.raises(SharingError, match=reason):
            next(send(tracked(run), tracker(name, place)))

    refused(empty, "trackio", "has no numbers to send yet: a training has")
    wandb.refuses = True
    refused(fleet, "wandb", "wandb refuses .*-seed-3: permission denied$")
    wandb.refuses, wandb.silent = False, True
    refused(fleet, "wandb", "wandb did not take all of .*-seed-3 in time: check the connection")
    with pytest.raises(KeyboardInterrupt), tracker("wandb", place)(tracked(fleet)[0]):
        raise KeyboardInterrupt
    monkeypatch.setenv("WANDB_MODE", "disabled")
    refused(fleet, "wandb", "WANDB_MODE is disabled; expected online, or offline, which")
    monkeypatch.delenv("WANDB_MODE")
    wandb.key = False
    refused(fleet, "wandb", "wandb has no key: `wandb login`.*WANDB_MODE=offline")
    wandb.key = None
    refused(fleet, "wandb", "wandb refuses .*-seed-3: the key is wrong$")
    monkeypatch.setenv("TRACKIO_SPACE_ID", "me/space")
    refused(fleet, "trackio", "TRACKIO_SPACE_ID is set.*`trackio sync`")
    monkeypatch.delenv("TRACKIO_SPACE_ID")
    trackio.full = True
    refused(fleet, "trackio", "trackio did not store all of .*-seed-3: free space on the disk")
    for unnamed in ("", ".."):
        with pytest.raises(SharingError, match=f"project is '{unnamed}'; expected a name"):
            tracker("trackio", Place(unnamed))
    (tmp_path / "file").write_text("a file")
    with pytest.raises(StoreUnwritable, match="a part of the path is a file"):
        tracker("tensorboard", Place(to=tmp_path / "file"))
    for name in TRACKERS:
        monkeypatch.setitem(sys.modules, name, None)
        refused(fleet, name, f"{name} is not installed.*: python -m pip install '{name}>=")


def test_a_disk_that_is_full_is_one_line(
    fleet: RunFolder, tensorboard: Events, mlflow: Mlflow, wandb: Wandb, place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    # Called by a thread of the writer, whose traceback pytest would report.
    monkeypatch.setattr("tensorboard.summary.writer.record_writer.RecordWriter.write", full)
    with pytest.raises(StoreUnwritable, match=f"cannot write {place.to}/.*: the disk is full"):
        list(send(tracked(fleet), tracker("tensorboard", place)))
    monkeypatch.setattr(Path, "mkdir", full)
    for name in ("mlflow", "wandb"):
        with pytest.raises(StoreUnwritable, match=f"cannot write {place.to}: the disk is full"):
            list(send(tracked(fleet), tracker(name, place)))
