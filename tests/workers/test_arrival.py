"""A job on another machine: the store's mark, and what is printed there."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.errors import StoreUnwritable
from hopscope.store import Store
from hopscope.workers import arrival
from hopscope.workers.arrival import Mark, arrived, log_of
from hopscope.workers.job import Job, Report


@pytest.fixture
def job(store: Store, tiny: Experiment) -> Job:
    return Job.of((tiny,), store, "cpu", 1)


def test_a_job_is_done_and_reported_as_text(store: Store, tiny: Experiment, job: Job) -> None:
    mark = Mark.of(store)
    answer = json.loads(arrived(job.canonical_json(), mark.canonical_json()))
    (report,) = [Report(**fields) for fields in answer["reports"]]
    assert (report.name, report.state, answer["refused"]) == (tiny.run_name(), "complete", "")
    assert store.has_complete(tiny)
    assert Mark.of(store) == mark  # runs may come and go
    assert not log_of(job).exists()  # nothing was printed


def test_what_is_printed_is_kept(
    store: Store, job: Job, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def done(_: Job) -> list[Report]:
        os.write(1, b"by C\n")
        subprocess.run([sys.executable, "-c", "print('by another')"], check=True)
        warnings.warn("of torch", UserWarning, stacklevel=1)
        return []

    monkeypatch.setattr(arrival, "done", done)
    with warnings.catch_warnings(action="ignore"):
        arrived(job.canonical_json(), Mark.of(store).canonical_json())
    assert sorted(log_of(job).read_text().split("\n")) == ["", "by C", "by another"]
    print("afterwards")
    assert capfd.readouterr() == ("afterwards\n", "")


def test_a_store_that_takes_nothing_is_one_line() -> None:
    with pytest.raises(StoreUnwritable, match="cannot write /sys/hopscope: "):
        Mark.of(Store(Path("/sys/hopscope")))  # where not even root can make a folder


def test_a_file_in_place_of_the_store_is_one_line(store: Store) -> None:
    store.root.write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write .*runs: a file is in the way"):
        Mark.of(store)
