"""A worker hears of jobs by its input, of the end of its parent too, and answers by its output."""

import os
import queue
import signal
import threading

import pytest

from hopscope.configs import Experiment
from hopscope.store import Store
from hopscope.workers import Job, worker


def test_warnings_are_in_the_report(
    tiny: Experiment, store: Store, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    import warnings

    from hopscope.errors import RunWarning
    from hopscope.workers.job import report_of

    def warned(job: Job) -> list[object]:
        warnings.warn("bits differ", RunWarning, stacklevel=1)
        warnings.warn("of torch", UserWarning, stacklevel=1)
        return [report_of("a", 0.0, None), report_of("b", 0.0, None)]

    monkeypatch.setattr(worker, "done", warned)
    first, second = worker._reports(Job.of((tiny,), store, "cpu", 1).canonical_json())
    assert (first.notes, second.notes) == (("bits differ",), ())
    assert capsys.readouterr().err == "of torch\n"


@pytest.mark.parametrize("lines", [[], ["one\n", "two\n"]])
def test_a_parent_that_is_gone_asks_to_stop(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From when a job is there: whoever has it may still be starting up."""
    asked = []
    monkeypatch.setattr(os, "kill", lambda *what: asked.append(what))
    jobs: queue.Queue[str | None] = queue.Queue()
    busy = threading.Event()
    worker._receive(lines, jobs, busy)
    assert [jobs.get() for _ in range(len(lines) + 1)] == [*lines, None]
    assert asked == ([(os.getpid(), signal.SIGTERM)] if lines else [])


def test_what_libraries_print_is_no_report(
    tiny: Experiment, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    from hopscope.workers.job import report_of, reports_of

    def loud(job: Job) -> list[object]:
        os.write(worker.sys.stdout.fileno(), b"a library is talking\n")
        return [report_of("a", 0.0, None)]

    line = Job.of((tiny,), store, "cpu", 1).canonical_json()
    script, out = tmp_path / "jobs", tmp_path / "out"
    script.write_text(f"{line}\n{line}\n")
    monkeypatch.setattr(worker, "done", loud)
    monkeypatch.setattr(os, "kill", lambda *_: None)  # the end of the file comes at once
    with script.open() as jobs, out.open("w") as replies, (tmp_path / "err").open("w") as errors:
        streams = {"stdin": jobs, "stdout": replies, "stderr": errors}
        for name, stream in streams.items():
            monkeypatch.setattr(worker.sys, name, stream)
        worker.main()
    assert [reports_of(each)[0].name for each in out.read_text().splitlines()] == ["a", "a"]
    assert (tmp_path / "err").read_text() == "a library is talking\n" * 2
