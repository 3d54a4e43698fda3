"""Jobs and reports travel as text; a job takes what others did of it as it is."""

import os
import queue
import signal
import threading
import warnings
from contextlib import ExitStack
from io import StringIO
from pathlib import Path

import pytest
from torch import Tensor
from waiting import stopped

from hopscope.configs import Experiment
from hopscope.errors import Diverged, HopscopeError, Interrupted, RunWarning
from hopscope.runs import train
from hopscope.store import Store
from hopscope.training.trainer import Trainer
from hopscope.workers import Job, Report, job, worker
from hopscope.workers.cluster import do_on_node, store_word
from hopscope.workers.job import do, reports_from


def test_a_job_and_its_reports_travel_as_text(tiny: Experiment, store: Store) -> None:
    job = Job.of((tiny,), store, "cpu", 1)
    assert Job.from_json(job.model_dump_json()) == job
    (report,) = stopped(job)
    assert (report.state, report.reason) == ("stopped", "enough")
    assert report.text.startswith("stopped by enough at step 1, ")
    assert Report.from_json(report.canonical_json()) == report
    (report,) = reports_from(do_on_node(job.model_dump_json(), store_word(store.root)))
    assert (report.name, report.state, report.text) == (tiny.run_name(), "complete", "")
    assert store.has_complete(tiny)


def test_errors_are_data_and_errors_again(store: Store, tiny: Experiment) -> None:
    (report,) = do(Job.of((tiny,), store, "nowhere", 1))
    assert report.state == "failed"
    assert str(report.trouble()) == "device is 'nowhere'; expected auto, cpu, cuda or cuda:N"
    again = Report.of("a", Diverged("too far")).trouble()
    assert (type(again), str(again)) == (Diverged, "too far")
    later = Report(name="a", error="OfALaterVersion", text="nobody knows").trouble()
    assert (type(later), str(later)) == (HopscopeError, "nobody knows")
    assert type(Report.of("a", Interrupted("no HopscopeError")).trouble()) is HopscopeError


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The seeds of every step that is trained."""
    steps: list[tuple[int, ...]] = []
    advance = Trainer.advance

    def counting(self: Trainer) -> Tensor:
        steps.append(self.experiment.seeds)
        return advance(self)

    monkeypatch.setattr(Trainer, "advance", counting)
    return steps


def test_what_others_did_of_a_job_is_not_done_again(
    members: tuple[Experiment, ...], store: Store, tmp_path: Path, steps: list[tuple[int, ...]]
) -> None:
    job = Job.of(members[:3], store, "cpu", 1)
    for trained in ({(0, 1, 2)}, set()):  # a fleet that was parted is not trained again
        steps.clear()
        assert [report.state for report in do(job)] == ["complete"] * 3
        assert set(steps) == trained
    # Another sweep has trained one since the job was made.
    second = Store(tmp_path / "second")
    train(members[1], second, "cpu")
    steps.clear()
    job = Job.of(members[:3], second, "cpu", 1)
    assert [report.state for report in do(job)] == ["complete"] * 3
    assert steps == [(0, 2)] * members[0].steps
    # Another sweep has begun a fleet of another size: it goes on as it is.
    third = Store(tmp_path / "third")
    stopped(Job.of(members[:3], third, "cpu", 1))
    steps.clear()
    assert [each.state for each in do(Job.of(members[2:4], third, "cpu", 1))] == ["complete"] * 2
    assert set(steps) == {(0, 1, 2), (3,)}
    assert sorted(third.names()) == sorted(recipe.run_name() for recipe in members[:4])
    assert do(Job.of(members[:1], third, "cpu", 1))[0].state == "complete"


def test_a_worker_that_lost_its_parent_asks_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the moment that a job is there: its process may still be starting up."""
    for lines in ([], ["one\n", "two\n"]):
        asked: list[tuple[int, int]] = []
        monkeypatch.setattr(os, "kill", lambda *what: asked.append(what))  # noqa: B023
        monkeypatch.setattr(worker.sys, "stdin", StringIO("".join(lines)))
        jobs: queue.Queue[str | None] = queue.Queue()
        worker._receive(jobs, threading.Event())
        assert [jobs.get_nowait() for _ in range(len(lines) + 1)] == [*lines, None]
        assert asked == ([(os.getpid(), signal.SIGTERM)] if lines else [])


def work(lines: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a worker do these jobs; it writes the files `out` and `err`."""
    (folder / "jobs").write_text(lines)
    monkeypatch.setattr(os, "kill", lambda *_: None)  # the end of the file comes at once
    with ExitStack() as opened:
        for stream, name in (("stdin", "jobs"), ("stdout", "out"), ("stderr", "err")):
            file = (folder / name).open("r" if name == "jobs" else "w")
            monkeypatch.setattr(worker.sys, stream, opened.enter_context(file))
        worker.main()


def test_a_worker_is_no_longer_busy_when_its_report_is_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next job may come at once, and must not be forgotten if the parent dies."""
    written: list[str] = []
    monkeypatch.setattr(worker, "do_remote", str.strip)
    monkeypatch.setattr(
        threading.Event, "clear", lambda _: written.append((tmp_path / "out").read_text())
    )
    work("one\ntwo\n", tmp_path, monkeypatch)
    assert written == ["", "one\n"]


def test_warnings_are_in_the_report_and_what_libraries_print_is_not(
    tiny: Experiment, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def loud(_: Job) -> list[object]:
        os.write(worker.sys.stdout.fileno(), b"a library is talking\n")
        warnings.warn("bits differ", RunWarning, stacklevel=1)
        warnings.warn("of torch", UserWarning, stacklevel=1)
        return [Report.of("a"), Report.of("b")]

    line = Job.of((tiny,), store, "cpu", 1).model_dump_json()
    monkeypatch.setattr(job, "do", loud)
    work(f"{line}\n{line}\n", tmp_path, monkeypatch)
    for reply in (tmp_path / "out").read_text().splitlines():
        assert [(each.name, each.notes) for each in reports_from(reply)] == [
            ("a", ("bits differ",)),
            ("b", ()),
        ]
    said = (tmp_path / "err").read_text().splitlines()
    assert sorted(said) == ["a library is talking"] * 2 + ["of torch"] * 2
