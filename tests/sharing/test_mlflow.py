"""MLflow: a stand-in that takes and refuses what the real one does (see docs/log.md)."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hopscope.errors import SharingError
from hopscope.sharing.mlflow import metric_name
from hopscope.sharing.tracked import tracked
from hopscope.sharing.tracker import Place, send, tracker
from hopscope.store import RunFolder


class Refused(Exception):
    """What the real one raises."""


class Server:
    """Experiments, runs with tags, and numbers by name and step."""

    def __init__(self) -> None:
        self.runs: dict[str, SimpleNamespace] = {}
        self.uri: str | None = None
        self.down_after: int | None = None
        self.exceptions = SimpleNamespace(MlflowException=Refused)

    def MlflowClient(self, tracking_uri: str | None) -> "Server":  # noqa: N802
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
        info = SimpleNamespace(run_id=run_name, ended=False)
        made = SimpleNamespace(
            info=info, data=SimpleNamespace(tags=tags, metrics={}), numbers={}, params={}
        )
        self.runs[run_name] = made
        return made

    def log_batch(self, name: str, metrics: Any = (), params: Any = (), tags: Any = ()) -> None:
        assert len(metrics) <= 1000
        if self.down_after is not None:
            self.down_after -= 1
            if self.down_after < 0:
                raise Refused("no answer\nfrom there")
        run = self.runs[name]
        for key, value, _, step in metrics:
            assert re.fullmatch(r"[/\w.\- :]+", key)
            assert (key, step) not in run.numbers
            run.numbers[key, step] = run.data.metrics[key] = value
        run.params |= dict(params)
        run.data.tags |= dict(tags)

    def set_terminated(self, name: str) -> None:
        self.runs[name].info.ended = True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    plain = SimpleNamespace(Metric=lambda *fields: fields, Param=lambda *f: f, RunTag=lambda *f: f)
    monkeypatch.setitem(sys.modules, "mlflow", made)
    monkeypatch.setitem(sys.modules, "mlflow.entities", plain)
    return made


def test_a_model_is_one_run_however_often_it_is_sent(fleet: RunFolder, server: Server) -> None:
    runs = tracked(fleet)
    for steps in (7, 0):
        assert [sent.steps for sent in send(runs, tracker("mlflow", Place()))] == [steps] * 2
    assert len(server.runs) == 2
    found = server.runs[runs[1].name]
    expected = {(name, step): v for step, own in runs[1].rows() for name, v in own.items()}
    assert found.numbers == expected
    assert found.params["model.layers"] == "2"
    assert found.info.ended
    assert (server.uri, found.data.tags["hopscope.group"]) == (None, fleet.name)


def test_whoever_was_interrupted_goes_on_behind_what_is_there(
    demo: RunFolder, server: Server, tmp_path: Path
) -> None:
    runs = tracked(demo)
    server.down_after = 3  # the settings, and two portions
    with pytest.raises(SharingError, match="mlflow refuses gallery-demo-.*: no answer$"):
        list(send(runs, tracker("mlflow", Place(to=tmp_path / "kept"))))
    server.down_after = None
    (sent,) = send(runs, tracker("mlflow", Place(to=tmp_path / "kept")))
    assert 0 < sent.steps < 2501
    steps = [step for name, step in server.runs[runs[0].name].numbers if name == "train/loss/x1"]
    assert steps == list(range(1, 2501))
    assert server.uri == f"sqlite:///{tmp_path}/kept/mlflow.db"


def test_a_series_that_is_kept_later_is_added(
    fleet: RunFolder, server: Server, late: Callable[[], None]
) -> None:
    runs, to = tracked(fleet)[:1], tracker("mlflow", Place())
    list(send(runs, to))
    late()
    assert [sent.steps for _ in range(2) for sent in send(runs, to)] == [2, 0]
    assert server.runs[runs[0].name].data.tags["hopscope.step"] == "6"


def test_names_are_changed_as_little_as_it_takes() -> None:
    for name in ("train/loss/x1", "accuracy/f1-d5", "parameters/a"):
        assert metric_name(name) == name
    names = {f"parameters/c{{{n}}}" for n in ("1", "2", "1,2", "3")}
    assert len(set(map(metric_name, names))) == 4
