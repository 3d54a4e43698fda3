"""Weights & Biases: a stand-in that knows what the real one told us (see docs/log.md)."""

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


class Refused(Exception):
    """What the real one raises."""


class Service:
    """Runs by id; steps that do not rise are lost, as there."""

    def __init__(self, folder: Path) -> None:
        self.runs: dict[str, dict[int, dict[str, float]]] = {}
        self.asked: list[dict[str, Any]] = []
        self.key, self.refuses, self.folder = True, False, folder
        self.errors = SimpleNamespace(Error=Refused)

    def login(self, prompt: bool) -> bool:
        assert not prompt
        return self.key

    def Settings(self, **fields: Any) -> dict[str, Any]:  # noqa: N802
        return fields

    def init(self, **fields: Any) -> "Opened":
        assert (fields["resume"], fields["reinit"]) == ("allow", "create_new")
        self.asked.append(fields)
        if self.refuses:
            raise Refused("permission denied\nmore")
        return Opened(self, fields["id"], len(self.asked))


class Opened:
    url = "https://wandb.example/run"

    def __init__(self, service: Service, name: str, number: int) -> None:
        self.resumed = name in service.runs
        self.rows = service.runs.setdefault(name, {})
        self.dir = str(service.folder / "wandb" / f"offline-run-{number}-{name}" / "files")
        Path(self.dir).mkdir(parents=True)
        self.open = True

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
        assert self.open
        self.open = False


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service(tmp_path)
    monkeypatch.setitem(sys.modules, "wandb", made)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.chdir(tmp_path)
    return made


def test_a_model_is_one_run_however_often_it_is_sent(fleet: RunFolder, service: Service) -> None:
    runs = tracked(fleet)
    for steps in (7, 0):
        assert [s.steps for s in send(runs, tracker("wandb", Place("mine")))] == [steps] * 2
    assert service.runs == {run.id: dict(run.rows()) for run in runs}
    asked = service.asked[0]
    assert (asked["project"], asked["group"]) == ("mine", fleet.name)
    assert asked["config"] == runs[0].settings
    assert asked["settings"]["disable_git"]


def test_offline_only_what_is_new_is_written(
    fleet: RunFolder, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    service.key = False
    runs = tracked(fleet)[:1]
    (first,), (again,) = (list(send(runs, tracker("wandb", Place()))) for _ in range(2))
    assert (first.steps, again.steps) == (7, 0)
    assert Path(first.where).resolve() == Path(again.where).resolve()
    assert len(service.asked) == 1


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_earlier_steps_are_refused_and_not_lost(
    fleet: RunFolder, service: Service, monkeypatch: pytest.MonkeyPatch, mode: str,
    late: Callable[[], None],
) -> None:  # fmt: skip
    monkeypatch.setenv("WANDB_MODE", mode)
    runs = tracked(fleet)[:1]
    list(send(runs, tracker("wandb", Place())))
    late()
    with pytest.raises(SharingError, match="after 6 now, and attention/0.1/late was not sent"):
        list(send(runs, tracker("wandb", Place())))


def test_a_note_that_says_nothing_is_one_line(
    fleet: RunFolder, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    runs = tracked(fleet)[:1]
    (first,) = send(runs, tracker("wandb", Place()))
    (Path(first.where) / "hopscope-step.txt").write_text("")
    with pytest.raises(SharingError, match="step.txt does not say up to which step its portion"):
        list(send(runs, tracker("wandb", Place())))


def test_without_a_key_it_says_what_to_do(service: Service) -> None:
    service.key = False
    with pytest.raises(SharingError, match="wandb has no key: `wandb login`.*WANDB_MODE=offline"):
        tracker("wandb", Place())


def test_a_refusal_is_one_line(fleet: RunFolder, service: Service) -> None:
    service.refuses = True
    with pytest.raises(SharingError, match="wandb refuses .*-seed-3: permission denied$"):
        list(send(tracked(fleet), tracker("wandb", Place())))
