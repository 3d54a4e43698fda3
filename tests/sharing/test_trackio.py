"""trackio: a stand-in that keeps runs by name, one open at a time, as the real one does."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hopscope.errors import SharingError
from hopscope.sharing.tracked import tracked
from hopscope.sharing.tracker import Place, send, tracker
from hopscope.store import RunFolder

Rows = list[tuple[int, dict[str, float]]]


class Library:
    """Its three calls; what is logged is kept when the run is finished."""

    def __init__(self) -> None:
        self.runs: dict[str, Rows] = {}
        self.asked: dict[str, Any] = {}
        self.waiting: Rows | None = None

    def init(self, **fields: Any) -> None:
        assert self.waiting is None
        assert (fields["resume"], fields["embed"]) == ("allow", False)
        print("* Created new run")
        self.asked, self.waiting = fields, []

    def log(self, values: dict[str, float], step: int) -> None:
        assert self.waiting is not None
        self.waiting.append((step, values))

    def finish(self) -> None:
        assert self.waiting is not None
        self.runs.setdefault(self.asked["name"], []).extend(self.waiting)
        self.waiting = None

    def get_logs(self, project: str, run: str) -> list[dict[str, float]]:
        return [{**values, "step": step} for step, values in self.runs[run]]

    def get_max_step_for_run(self, project: str, run: str) -> int | None:
        assert project == "mine"
        return max((step for step, _ in self.runs.get(run, [])), default=None)


@pytest.fixture
def trackio(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setitem(sys.modules, "trackio", made)
    storage = SimpleNamespace(SQLiteStorage=made)
    monkeypatch.setitem(sys.modules, "trackio.sqlite_storage", storage)
    monkeypatch.setenv("TRACKIO_DIR", "")
    return made


def test_a_model_is_one_run_however_often_it_is_sent(
    fleet: RunFolder, trackio: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tracked(fleet)
    for steps in (7, 0):
        to = tracker("trackio", Place("mine", tmp_path / "kept"))
        assert [sent.steps for sent in send(runs, to)] == [steps] * 2
    assert trackio.runs == {run.name: run.rows() for run in runs}
    assert trackio.asked["group"] == fleet.name
    assert trackio.asked["config"]["seed"] == 5
    assert capsys.readouterr().out == ""


def test_a_series_that_is_kept_later_is_added(
    fleet: RunFolder, trackio: Library, tmp_path: Path, late: Callable[[], None]
) -> None:
    runs, to = tracked(fleet)[:1], tracker("trackio", Place("mine", tmp_path / "kept"))
    list(send(runs, to))
    late()
    assert [sent.steps for _ in range(2) for sent in send(runs, to)] == [2, 0]
    assert trackio.runs[runs[0].name][7:] == [
        (0, {"attention/0.1/late": 0.5}), (4, {"attention/0.1/late": 0.25}),
    ]  # fmt: skip


def test_runs_that_are_kept_elsewhere_are_not_doubled(
    trackio: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_SPACE_ID", "me/space")
    with pytest.raises(SharingError, match="TRACKIO_SPACE_ID is set.*`trackio sync`"):
        tracker("trackio", Place())
