"""How tests call commands; and what those of `hopscope papers run` share."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hopscope.cli.main import main
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.registry import PAPERS, Registry
from hopscope.papers.row import ResultRow
from hopscope.store import RunFolder
from hopscope.training import Run

Patch = pytest.MonkeyPatch
Captured = pytest.CaptureFixture[str]
Say = Callable[..., tuple[int, str, str]]
"""A command: exit code, output, errors."""
Said = Callable[..., str]
"""A command that succeeds: its output."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: Patch) -> Path:
    """The folder that the command is called in; its runs are in `runs`."""
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hopscope(capsys: Captured, monkeypatch: Patch) -> Say:
    """Exit code, output and errors of a command."""

    def called(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hopscope", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return called


class End(ResultRow):
    loss: float


def ends(folder: RunFolder) -> list[End]:
    """How a run ended."""
    return [End(loss=float(Run(folder).final_losses().mean()))]


@dataclass(frozen=True)
class Only(Registry):
    """A registry of which only some experiments are found."""

    names: tuple[str, ...]

    def matching(self, pattern: str) -> list[PaperExperiment]:
        return [each for each in super().matching(pattern) if each.name in self.names]


def registry(*experiments: PaperExperiment) -> Registry:
    """These experiments, and the claims of the papers, none of which they decide."""
    others = {**PAPERS.experiments, **{each.name: each for each in experiments}}
    return Only(others, PAPERS.claims, tuple(each.name for each in experiments))


def watcher(**does: Any) -> Any:
    """A display that does this and nothing else."""

    def nothing(*_: object) -> None:
        pass

    return SimpleNamespace(**{"start": nothing, "advance": nothing, "stop": nothing} | does)
