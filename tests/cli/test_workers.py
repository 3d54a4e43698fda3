"""Several runs from one command line: who shares them out, and what one sees meanwhile."""

from pathlib import Path

import pytest

from hopscope.cli import workers
from hopscope.cli.main import run
from hopscope.cli.training import with_ranges
from hopscope.cli.workers import ManyDisplay, WorkersArguments, ended, headline, pool_of
from hopscope.configs import Experiment
from hopscope.errors import ConfigError, WorkerDied
from hopscope.store import Store
from hopscope.workers import Here, Job, Outcome, Processes, processes
from hopscope.workers.job import Trouble, report_of
from hopscope.workers.packing import member
from hopscope.workers.progress import Progress


class Fake:
    """A pool that is not `Here` to the command, and works in this process."""

    pack, slots, share = 2, 1, 1

    def reports(self, jobs, stop):
        yield from Here().reports(jobs, stop)


def test_who_carries_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 4)
    assert pool_of(WorkersArguments()) == Here()
    assert pool_of(WorkersArguments(workers="3")) == Processes(3, "auto")
    assert pool_of(WorkersArguments(workers="3", pack="8")) == Processes(3, 8)
    for chosen, line in {
        ("many", "auto"): "--workers is 'many'; expected a number of processes, or ray",
        ("2", "none"): "--pack is 'none'; expected auto, or a number of models",
        ("2", "0"): "pack is 0; expected auto, or a number of models from 1 on",
        ("9", "auto"): "workers is 9; expected 1 to 4",
        (None, "8"): "--pack is for several runs: say --workers N as well",
    }.items():
        with pytest.raises(ConfigError, match=line):
            pool_of(WorkersArguments(workers=chosen[0], pack=chosen[1]))


def test_seeds_are_ranges_too() -> None:
    assert with_ranges(["--seeds=0..2", "--threads", "1"]) == [
        "--seeds", "0", "1", "2", "--threads", "1",
    ]  # fmt: skip
    assert with_ranges(["--store", "../runs", "--seeds", "5", "7..8"]) == [
        "--store", "../runs", "--seeds", "5", "7", "8",
    ]  # fmt: skip
    for wrong in ("3..1", "0..", "0..9999999", "a..b", "0...3"):
        with pytest.raises(ConfigError, match=r"--seeds is .*; expected FIRST\.\.LAST, such as"):
            with_ranges(["--seeds", wrong])


def test_train_makes_a_run_of_each_seed(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(workers, "pool_of", lambda chosen: Fake())
    recipe = tmp_path / "recipe.json"
    recipe.write_text(tiny.to_file())
    words = ["train", str(recipe), "--seeds", "0..2", "--workers", "2", "--store"]
    assert run([*words, str(tmp_path / "runs"), "--device", "cpu"]) == 0
    store = Store(tmp_path / "runs")
    assert sorted(store.names()) == sorted(member(tiny, seed).run_name() for seed in range(3))
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "3 of 3 runs are complete"
    assert any(line.startswith("3 of 3 runs complete · 36 of 36 steps") for line in out)


def test_runs_that_are_left_ask_for_the_same_command_again() -> None:
    assert ended(Outcome((), 2, (WorkerDied("gone"),))) == 75
    assert ended(Outcome((), 1, (WorkerDied("gone"),))) == 2
    assert ended(Outcome((), 0)) == 0


def test_a_line_says_how_far_all_of_it_is(tiny: Experiment, store: Store) -> None:
    now = [0.0]
    jobs = [Job.of((member(tiny, seed),), store, "cpu", 1) for seed in range(2)]
    progress = Progress(jobs, clock=lambda: now[0])
    assert headline(progress) == "0 of 2 runs complete · 0 of 24 steps of all models · …"
    died = Trouble.of(WorkerDied("gone"))
    progress.reports |= {"a": report_of("a", 1.0, died), "b": report_of("b", 1.0, None)}
    progress.first, now[0] = -12, 61.0
    assert headline(progress) == (
        "1 of 2 runs complete · 1 failed · 0 of 24 steps of all models · 2:02 left"
    )


def test_a_line_is_said_now_and_then(
    tiny: Experiment, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ManyDisplay()
    progress = Progress([Job.of((tiny,), store, "cpu", 1)])
    shown.look(progress)
    shown.look(progress)
    shown.stop()
    assert len(capsys.readouterr().out.splitlines()) == 1
