"""One contract of all trackers: every number arrives once, however often a run is sent.

Stand-ins take and refuse what the libraries do (see docs/log.md); TensorBoard reads for itself.
"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hopscope.errors import SharingError, StoreUnwritable
from hopscope.sharing.mlflow import metric_name
from hopscope.sharing.tracked import SERIES, Row, Tracked, tracked
from hopscope.sharing.tracker import TRACKERS, Place, follow, library, send, tracker
from hopscope.store import RunFolder

Record = Callable[[RunFolder, int, int], None]
Numbers = dict[tuple[int, str], float]


def flat(rows: Sequence[Row]) -> Numbers:
    return {(step, name): value for step, values in rows for name, value in values.items()}


class Refused(Exception):
    """What the libraries raise."""


class Wandb:
    """Runs by id; steps that do not rise are lost, as there."""

    def __init__(self, folder: Path) -> None:
        self.runs: dict[str, dict[int, dict[str, float]]] = {}
        self.asked: list[dict[str, Any]] = []
        self.key, self.refuses, self.folder, self.open = True, False, folder, 0
        self.errors = SimpleNamespace(Error=Refused)

    def login(self, prompt: bool) -> bool:
        assert not prompt
        return self.key

    def Settings(self, **fields: Any) -> dict[str, Any]:  # noqa: N802
        return fields

    def init(self, **fields: Any) -> "WandbRun":
        assert (fields["resume"], fields["reinit"]) == ("allow", "create_new")
        if self.refuses:
            raise Refused("permission denied\nmore")
        self.asked.append(fields)
        return WandbRun(self, fields["id"], len(self.asked))

    def numbers(self, run: Tracked) -> Numbers:
        return flat(list(self.runs[run.id].items()))


class WandbRun:
    url = "https://wandb.example/run"

    def __init__(self, service: Wandb, name: str, number: int) -> None:
        self.service, self.resumed = service, name in service.runs
        self.rows = service.runs.setdefault(name, {})
        self.dir = str(service.folder / "wandb" / f"offline-run-{number}-{name}" / "files")
        Path(self.dir).mkdir(parents=True)
        service.open += 1

    @property
    def summary(self) -> dict[str, float]:
        return {name: v for values in self.rows.values() for name, v in values.items()}

    @property
    def step(self) -> int:
        return max(self.rows, default=-1) + 1

    def log(self, values: dict[str, float], step: int) -> None:
        assert step >= self.step
        self.rows[step] = values

    def finish(self) -> None:
        self.service.open -= 1


class Trackio:
    """Runs by name, one open at a time; what is logged is kept when the run is finished."""

    def __init__(self) -> None:
        self.runs: dict[str, list[Row]] = {}
        self.asked: dict[str, Any] = {}
        self.waiting: list[Row] = []
        self.open = 0

    def init(self, **fields: Any) -> None:
        assert (fields["resume"], fields["embed"], self.open) == ("allow", False, 0)
        print("* Created new run")
        self.asked, self.waiting, self.open = fields, [], 1

    def log(self, values: dict[str, float], step: int) -> None:
        self.waiting.append((step, values))

    def finish(self) -> None:
        self.runs.setdefault(self.asked["name"], []).extend(self.waiting)
        self.open = 0

    def get_logs(self, project: str, run: str) -> list[dict[str, float]]:
        return [{**values, "step": step} for step, values in self.runs[run]]

    def get_max_step_for_run(self, project: str, run: str) -> int | None:
        assert project == "mine"
        return max((step for step, _ in self.runs.get(run, [])), default=None)

    def numbers(self, run: Tracked) -> Numbers:
        return flat(self.runs[run.name])


class Mlflow:
    """Experiments, runs with tags, and numbers by name and step."""

    def __init__(self) -> None:
        self.runs: dict[str, SimpleNamespace] = {}
        self.uri: str | None = None
        self.down_after, self.open = 10**9, 0
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

    def create_run(self, experiment: str, run_name: str, tags: dict[str, str]) -> Any:
        data = SimpleNamespace(tags=tags, metrics={})
        info = SimpleNamespace(run_id=run_name, ended=False)
        self.runs[run_name] = SimpleNamespace(info=info, data=data, told={}, params={})
        return self.runs[run_name]

    def log_batch(self, name: str, metrics: Any = (), params: Any = (), tags: Any = ()) -> None:
        assert len(metrics) <= 1000
        self.down_after -= 1
        if self.down_after < 0:
            raise Refused("no answer\nfrom there")
        run = self.runs[name]
        for key, value, _, step in metrics:
            assert re.fullmatch(r"[/\w.\- :]+", key)
            assert (step, key) not in run.told
            run.told[step, key] = run.data.metrics[key] = value
        run.params |= dict(params)
        run.data.tags |= dict(tags)

    def set_terminated(self, name: str) -> None:
        self.runs[name].info.ended = True

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
        told = [(e, tag) for tag in found.Tags()["scalars"] for e in found.Scalars(tag)]
        assert len({(event.step, tag) for event, tag in told}) == len(told)
        return {(event.step, tag): event.value for event, tag in told}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("mine", tmp_path / "kept")


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wandb:
    made = Wandb(tmp_path / "kept")
    monkeypatch.setitem(sys.modules, "wandb", made)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return made


@pytest.fixture
def offline(wandb: Wandb, monkeypatch: pytest.MonkeyPatch) -> Wandb:
    monkeypatch.setenv("WANDB_MODE", "offline")
    wandb.key = False
    return wandb


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
    plain = SimpleNamespace(Metric=lambda *fields: fields, Param=lambda *f: f, RunTag=lambda *f: f)
    monkeypatch.setitem(sys.modules, "mlflow", made)
    monkeypatch.setitem(sys.modules, "mlflow.entities", plain)
    return made


@pytest.fixture
def tensorboard(place: Place) -> Events:
    return Events(place.to)


@pytest.fixture(params=[*TRACKERS, "offline"])
def there(request: pytest.FixtureRequest) -> Any:
    """What stands for the library of each tracker."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def name(there: Any) -> str:
    return {Events: "tensorboard"}.get(type(there), type(there).__name__.lower())


def test_a_series_that_is_kept_later_is_added(
    fleet: RunFolder, there: Any, name: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or refused, by who loses earlier steps."""
    runs, to = tracked(fleet)[:1], tracker(name, place)
    list(send(runs, to))

    def late(run: Tracked, known: int) -> list[Any]:
        return [("attention/0.1/late", [0, 4], [0.5, 0.25])]

    monkeypatch.setitem(SERIES, "facts", (*SERIES["facts"], late))
    if name == "wandb":
        with pytest.raises(SharingError, match="after 6 now, and attention/0.1/late was not sent"):
            list(send(runs, tracker(name, place)))
        return
    steps = [sent.steps for _ in range(2) for sent in send(runs, to)]
    assert steps == ([7, 7] if name == "tensorboard" else [2, 0])
    assert there.numbers(runs[0]) == flat(runs[0].rows())
    assert there.numbers(runs[0])[4, "attention/0.1/late"] == 0.25


def test_every_number_arrives_once_however_a_run_is_followed_or_sent_again(
    empty: RunFolder, record: Record, there: Any, name: str, place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    portions = [(0, 2), (3, 6)]

    def pause() -> None:
        """Another process trains it meanwhile."""
        record(RunFolder(empty.path), *portions.pop(0))

    sent = list(follow(tracked(empty), tracker(name, place), pause))
    assert [each.steps for each in sent] == [3, 3, 4, 4]
    assert portions == []
    runs = tracked(RunFolder(empty.path))
    sent = list(send(runs, tracker(name, place)))
    again = 7 if name == "tensorboard" else 0  # a file is compared as a whole
    assert [(each.steps, bool(each.where)) for each in sent] == [(again, True)] * 2
    assert all(there.numbers(run) == flat(run.rows()) for run in runs)
    assert (there.open, capsys.readouterr().out) == (0, "")


def test_an_interruption_closes_what_is_open(empty: RunFolder, wandb: Wandb, place: Place) -> None:
    def pause() -> None:
        assert wandb.open == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(follow(tracked(empty), tracker("wandb", place), pause))
    assert wandb.open == 0


def test_a_run_without_numbers_is_refused(empty: RunFolder, trackio: Trackio, place: Place) -> None:
    with pytest.raises(SharingError, match="has no numbers to send: it was not trained"):
        list(send(tracked(empty), tracker("trackio", place)))


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TRACKERS:
        monkeypatch.setitem(sys.modules, name, None)
        if name == "tensorboard":  # written by ourselves
            assert tracker(name, Place())
            continue
        with pytest.raises(SharingError, match=f"pip install 'hopscope\\[{name}\\]'"):
            tracker(name, Place())
        with pytest.raises(SharingError, match=f"{name} is not installed"):
            library(name)


def test_settings_and_groups_are_sent_along(
    fleet: RunFolder, wandb: Wandb, trackio: Trackio, mlflow: Mlflow, tensorboard: Events,
    place: Place,
) -> None:  # fmt: skip
    runs = tracked(fleet)
    for name in TRACKERS:
        list(send(runs, tracker(name, place)))
    for asked in (wandb.asked[-1], trackio.asked):
        assert (asked["project"], asked["group"]) == ("mine", fleet.name)
        assert asked["config"] == runs[1].settings
    assert wandb.asked[0]["settings"]["disable_git"]
    found = mlflow.runs[runs[1].name]
    assert (found.params["model.layers"], found.info.ended) == ("2", True)
    assert found.data.tags["hopscope.group"] == fleet.name
    config = tensorboard.read(runs[0]).Tensors("config")[0].tensor_proto.string_val[0]
    assert b"| model.layers | 2 |" in config


def test_offline_only_what_is_new_is_written(
    fleet: RunFolder, offline: Wandb, place: Place
) -> None:
    runs = tracked(fleet)[:1]
    (first,), (again,) = (list(send(runs, tracker("wandb", place))) for _ in range(2))
    assert first.where == again.where
    assert len(offline.asked) == 1
    (Path(first.where) / "hopscope-step.txt").write_text("")
    with pytest.raises(SharingError, match="step.txt does not say up to which step its portion"):
        list(send(runs, tracker("wandb", place)))


def test_without_a_key_or_where_it_is_refused_wandb_says_so(
    fleet: RunFolder, wandb: Wandb, place: Place
) -> None:
    wandb.refuses = True
    with pytest.raises(SharingError, match="wandb refuses .*-seed-3: permission denied$"):
        list(send(tracked(fleet), tracker("wandb", place)))
    wandb.key = False
    with pytest.raises(SharingError, match="wandb has no key: `wandb login`.*WANDB_MODE=offline"):
        tracker("wandb", place)


def test_runs_of_trackio_that_are_kept_elsewhere_are_not_doubled(
    trackio: Trackio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_SPACE_ID", "me/space")
    with pytest.raises(SharingError, match="TRACKIO_SPACE_ID is set.*`trackio sync`"):
        tracker("trackio", Place())


def test_whoever_was_interrupted_goes_on_behind_what_is_there(
    demo: RunFolder, mlflow: Mlflow, place: Place
) -> None:
    runs = tracked(demo)
    mlflow.down_after = 3  # the settings, and two portions
    with pytest.raises(SharingError, match="mlflow refuses gallery-demo-.*: no answer$"):
        list(send(runs, tracker("mlflow", place)))
    mlflow.down_after = 10**9
    (sent,) = send(runs, tracker("mlflow", place))
    assert 0 < sent.steps < 2501
    steps = [step for step, name in mlflow.numbers(runs[0]) if name == "train/loss/x1"]
    assert steps == list(range(1, 2501))
    assert mlflow.uri == f"sqlite:///{place.to}/mlflow.db"
    assert tracker("mlflow", Place()).where == "http://here"


def test_names_are_changed_for_mlflow_as_little_as_it_takes() -> None:
    for name in ("train/loss/x1", "accuracy/f1-d5", "parameters/a"):
        assert metric_name(name) == name
    names = {f"parameters/c{{{n}}}" for n in ("1", "2", "1,2", "3")}
    assert len(set(map(metric_name, names))) == 4


def test_an_event_file_that_grows_keeps_what_it_held(
    fleet: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TensorBoard that reads on where it stopped finds the next record there."""
    to, run = tracker("tensorboard", Place(to=tmp_path)), tracked(fleet)[0]
    rows, log = run.rows(), to.begin(run)
    log.add(rows[:3])
    (path,) = tmp_path.rglob("*tfevents*")
    early, file = path.read_bytes(), path.stat().st_ino
    log.add(rows[3:5])
    later = fleet.manifest.model_copy(update={"seconds": 9.0})  # times are estimated anew
    monkeypatch.setattr(fleet, "manifest", later)
    to.begin(run).add(rows)
    whole = path.read_bytes()
    assert whole[: len(early)] == early
    assert [sent.steps for sent in follow([run], to, lambda: None)] == [7]
    assert path.read_bytes() == whole
    assert path.stat().st_ino == file  # one that was renamed over it would not be seen
    assert Events(tmp_path).numbers(run) == flat(rows)


def test_an_event_file_that_holds_anything_else_is_written_anew(
    fleet: RunFolder, tmp_path: Path
) -> None:
    run, to = tracked(fleet)[0], tracker("tensorboard", Place(to=tmp_path / "logs"))
    list(send([run], to))
    (path,) = tmp_path.rglob("*tfevents*")
    whole = path.read_bytes()
    for harmed in (whole[:-3], whole + whole, b"x"):
        path.write_bytes(harmed)
        list(send([run], to))
        assert path.read_bytes() == whole
    (tmp_path / "file").write_text("a file")
    with pytest.raises(StoreUnwritable, match="a part of the path is a file"):
        list(send([run], tracker("tensorboard", Place(to=tmp_path / "file"))))
