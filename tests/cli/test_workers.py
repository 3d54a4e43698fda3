"""Several runs from one command line, who shares them out, and what one sees of a training."""

import io
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from calling import Captured, Patch
from rich.console import Console
from rich.text import Text

from hopscope.cli.display import Changing, RunDisplay
from hopscope.cli.flags import seeds_of
from hopscope.cli.main import run
from hopscope.cli.output import flush
from hopscope.cli.training import train
from hopscope.cli.workers import WorkerFlags, ended, headline
from hopscope.configs import Experiment
from hopscope.errors import ConfigError, OutputLost, TrainingError
from hopscope.store import Store
from hopscope.workers import Here, Job, Outcome, Processes, Report, pools
from hopscope.workers.progress import SweepProgress


class Fake:
    """A pool that is not `Here` to the command, and works in this process."""

    pack, job_threads = 4, None

    def open(self, jobs, stop):
        return Here().open(jobs, stop)


def test_who_carries_out(monkeypatch: Patch) -> None:
    monkeypatch.setattr(pools, "cores", lambda: 4)
    with click.Context(train):
        assert WorkerFlags().pool() == Here()
        assert WorkerFlags(workers="3").pool() == Processes(3, 4)
        assert WorkerFlags(workers="3", pack=8).pool() == Processes(3, 8)


def test_seeds_are_ranges_too() -> None:
    assert seeds_of("5,7..8") == (5, 7, 8)
    for wrong in ("3..1", "0..", "0..9999999", "a..b", "0...3", "0-7", ""):
        with pytest.raises(ConfigError, match=r"--seeds is .*; expected numbers such as 0,3,5"):
            seeds_of(wrong)


def test_train_makes_a_run_of_each_seed(
    tiny: Experiment, tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text(tiny.to_file())
    words = ["train", str(recipe), "--seeds", "0..2", "--device", "cpu", "--store"]
    names = [tiny.replace(seeds=(seed,)).run_name() for seed in range(3)]
    for name in ("workers", "alone"):
        with monkeypatch.context() as patch:
            if name == "workers":
                patch.setattr(WorkerFlags, "pool", lambda chosen: Fake())
            assert run([*words, str(tmp_path / name)]) == 0
        store = Store(tmp_path / name)
        assert sorted(store.names()) == sorted(names)
        out = capsys.readouterr().out.splitlines()
        assert out[-4:] == [*names, "3 of 3 runs are complete"]
        shown = any(line.startswith("3 of 3 runs complete · 36 of 36 steps") for line in out)
        assert shown == (name == "workers")


def test_runs_that_are_left_ask_for_the_same_command_again(capsys: Captured) -> None:
    assert ended(Outcome((), 2, (TrainingError("gone"),))) == 75
    assert ended(Outcome((), 1, (TrainingError("gone"),))) == 2
    capsys.readouterr()
    ended(Outcome((), 2, (TrainingError("gone"), TrainingError("gone"))))
    assert capsys.readouterr().err == "hopscope: gone (2 runs)\n"
    assert ended(Outcome((), 0)) == 0


def test_a_line_says_how_far_all_of_it_is(
    tiny: Experiment, store: Store, monkeypatch: Patch
) -> None:
    progress = SweepProgress(
        [Job.of((tiny.replace(seeds=(seed,)),), store, "cpu", 1) for seed in range(2)]
    )
    assert headline(progress) == "0 of 2 runs complete · 0 of 24 steps of all models · …"
    died = Report.of("a", TrainingError("gone"))
    progress.reports |= {"a": died, "b": Report.of("b")}
    monkeypatch.setattr(progress, "seconds_left", lambda steps: 122.0 - steps)
    assert headline(progress) == (
        "1 of 2 runs complete · 1 failed · 0 of 24 steps of all models · 2:02 left"
    )


def watch(shown: Any, store: Store, tiny: Experiment) -> None:
    shown.start(store.create(tiny), 0)
    for step in range(1, 9):
        shown.advance(step, {"train": np.full((1, 2), 1.0 / step, np.float32)})


def test_the_panel_has_a_line_for_each_hop(
    store: Store, tiny: Experiment, monkeypatch: Patch
) -> None:
    ticks = iter(range(100))  # two a step: of the rate, and of when to draw
    monkeypatch.setattr("hopscope.cli.display.time.monotonic", lambda: next(ticks) / 2)
    live = RunDisplay(Console(file=io.StringIO(), force_terminal=True, width=120))
    watch(live, store, tiny)
    live.stop()
    console = Console(file=io.StringIO(), width=120)
    console.print(live.picture())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for shown in ("step 8 of 12 · 1.0 steps/s · 0:04 left", "hop 1", "hop 2", "█",
                  "chance is 0.50"):  # fmt: skip
        assert shown in text


def test_lines_come_every_few_seconds_too(
    store: Store, tiny: Experiment, monkeypatch: Patch, capsys: Any
) -> None:
    ticks = iter(range(0, 1_000, 3))
    monkeypatch.setattr("hopscope.cli.display.time.monotonic", lambda: float(next(ticks)))
    watch(lines := RunDisplay(), store, tiny)  # which is no terminal
    lines.stop()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].endswith("step 0 of 12")
    assert 3 <= len(printed) < 8
    assert "hop 2 0." in printed[-1]


def test_a_display_that_fails_is_dropped(capsys: Captured) -> None:
    for error in (BrokenPipeError(32, "Broken pipe"), OutputLost("disk full")):
        asked = []

        def broken(error: Exception = error, asked: list[int] = asked) -> str:
            asked.append(1)
            raise error

        shown = Changing()
        for _ in range(2):
            shown.show(Text, broken, now=True)
        shown.stop()
        assert asked == [1]
        err = capsys.readouterr().err
        assert err.startswith("hopscope: the training continues without a display (")
        assert err.count("\n") == 1
    with pytest.raises(OutputLost, match="disk full"):  # told again when the command ends
        flush()
    flush()
