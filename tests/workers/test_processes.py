"""Processes beside each other: what a killed one was doing goes on, and none is left behind.

Most workers here are fakes of a few lines, which speak as real ones do and start at once.
"""

import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, Interrupted, TrainingError
from hopscope.runs import Stop
from hopscope.store import Store
from hopscope.store.lock import LOCK
from hopscope.workers import Here, Job, Processes, Report, processes
from hopscope.workers.packing import member
from hopscope.workers.task import ATTEMPTS

FAKE = """
import json, os, pathlib, signal, sys, time
HERE = pathlib.Path(os.environ["FAKE"])
for line in sys.stdin:
    job = json.loads(line)
    recipe = json.loads(job["recipes"][0])
    seed = recipe["seeds"][0]
    with open(HERE / "ledger", "a") as file:
        file.write(f"{seed} {os.getpid()} {job['threads']} {os.environ['OMP_NUM_THREADS']}\\n")
    told = dict(name=str(seed), state="complete", seconds=0.0, host="fake")
    BEHAVIOUR
    print(json.dumps([told]), flush=True)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Workers that behave as these lines say."""
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setattr(processes, "cores", lambda: 4)

    def behave(*lines: str) -> None:
        code = FAKE.replace("BEHAVIOUR", "\n    ".join(lines))
        monkeypatch.setattr(processes, "COMMAND", [sys.executable, "-c", code])

    return behave


@pytest.fixture
def jobs(tiny: Experiment, store: Store) -> list[Job]:
    return [Job.of((member(tiny, seed),), store, "cpu", 2) for seed in range(6)]


def ledger(tmp_path: Path) -> list[list[int]]:
    return [[*map(int, line.split())] for line in (tmp_path / "ledger").read_text().splitlines()]


def told(pool: Processes, jobs: list[Job], stop: Stop | None = None) -> list[Report]:
    return [each for each in pool.reports(jobs, stop or Stop()) if each is not None]


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists() and bool(Path(f"/proc/{pid}/cmdline").read_bytes())


def test_jobs_are_shared_out_with_a_share_of_the_cores(fake, jobs, tmp_path: Path) -> None:
    fake("time.sleep(0.05)")
    assert sorted(report.name for report in told(Processes(2), jobs)) == [*"012345"]
    entries = ledger(tmp_path)
    assert {(threads, variable) for _, _, threads, variable in entries} == {(2, 2)}
    pids = {pid for _, pid, _, _ in entries}
    assert len(pids) == 2
    assert not any(map(alive, pids))


def test_the_job_of_a_killed_worker_goes_on_in_another(fake, jobs, tmp_path: Path) -> None:
    fake(
        "mark = HERE / f'killed-{seed}'",
        "if seed % 2 and not mark.exists():",
        "    mark.touch()",
        "    os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert sorted(report.name for report in told(Processes(2), jobs)) == [*"012345"]
    assert sorted(seed for seed, *_ in ledger(tmp_path)) == [0, 1, 1, 2, 3, 3, 4, 5, 5]


def test_a_job_that_kills_its_worker_is_a_failure(
    fake, jobs, tmp_path: Path, tiny: Experiment, store: Store
) -> None:
    left = store.create(member(tiny, 1)).path / LOCK
    fake("if seed == 1:", f"    pathlib.Path({str(left)!r}).write_text(str(os.getpid()))",
         "    sys.stderr.write('no memory left\\n')", "    sys.stderr.flush()",
         "    os.kill(os.getpid(), signal.SIGKILL)")  # fmt: skip
    reports = {report.name: report for report in told(Processes(2), jobs)}
    (bad,) = [report for report in reports.values() if report.failed]
    error = bad.trouble.error()
    assert isinstance(error, TrainingError)
    line = f"its worker died {ATTEMPTS} times and came no further (SIGKILL; no memory left)"
    assert str(error) == f"{left.parent.name}: {line}"
    assert sorted(seed for seed, *_ in ledger(tmp_path)) == [0, *ATTEMPTS * [1], 2, 3, 4, 5]


def test_what_nobody_foresaw_is_raised(fake, jobs, tmp_path: Path) -> None:
    fake("if seed == 2: 1 / 0", "time.sleep(0.2)")
    with pytest.raises(RuntimeError, match=r"a worker failed \(exit code 1\): .*ZeroDivisionError"):
        told(Processes(2), jobs)
    assert not any(alive(pid) for _, pid, *_ in ledger(tmp_path))


def test_asked_to_stop_once_workers_end_by_themselves(fake, jobs, tmp_path: Path) -> None:
    fake("signal.signal(signal.SIGTERM, lambda *_: (HERE / f'asked-{seed}').touch())",
         "while not (HERE / f'asked-{seed}').exists(): time.sleep(0.01)")  # fmt: skip
    stop = Stop()
    begun = time.monotonic()
    reports = []
    for report in Processes(2).reports(jobs, stop):
        if report is not None:
            reports.append(report)
        if (tmp_path / "ledger").exists() and len(ledger(tmp_path)) == 2:
            stop.ask("enough")
    assert sorted(report.name for report in reports) == ["0", "1"]  # no other was begun
    assert time.monotonic() - begun < 60
    assert not any(alive(pid) for _, pid, *_ in ledger(tmp_path))


def test_ctrl_c_once_asks_and_twice_kills(fake, jobs, tmp_path: Path) -> None:
    deaf = "signal.signal(signal.SIGTERM, lambda *_: (HERE / 'asked').touch())"
    fake(deaf, "while True: time.sleep(0.01)")

    def press() -> None:
        while not (tmp_path / "ledger").exists() or len(ledger(tmp_path)) < 2:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)
        while not (tmp_path / "asked").exists():
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    hand = threading.Thread(target=press)
    hand.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        told(Processes(2), jobs)
    hand.join()
    assert not isinstance(caught.value, Interrupted)
    assert not any(alive(pid) for _, pid, *_ in ledger(tmp_path))


def test_more_than_there_is_is_refused(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 4)
    with pytest.raises(ConfigError, match="workers is 5; expected 1 to 4, as many as there are"):
        Processes(5)
    with pytest.raises(ConfigError, match="workers is 0; expected 1 to 4"):
        Processes(0)
    assert Processes(2).share == Processes(2, threads=2).share == 2
    for pool in (Here, partial(Processes, 2)):
        with pytest.raises(ConfigError, match="threads is 0; expected 1 to 1,024"):
            pool(threads=0)
    with pytest.raises(ConfigError, match="2 workers with 3 threads each need 6 cores, and there"):
        Processes(2, threads=3)
    with pytest.raises(ConfigError, match="device is 'cuda', but torch sees no GPU"):
        told(Processes(2), [jobs[0].model_copy(update={"device": "cuda"})])
    with pytest.raises(ConfigError, match="'cuda:1', but each worker is given a GPU of its own"):
        told(Processes(2), [jobs[0].model_copy(update={"device": "cuda:1"})])


def test_each_worker_has_a_gpu(fake, jobs, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "gpus_for", lambda devices: ["0", "3"])
    fake("(HERE / f'gpu-{seed}').write_text(os.environ['CUDA_VISIBLE_DEVICES'])",
         "time.sleep(0.3 if seed < 2 else 0)")  # fmt: skip
    told(Processes(2), jobs)
    assert {(tmp_path / f"gpu-{seed}").read_text() for seed in (0, 1)} == {"0", "3"}
    # A GPU's memory is given back whole by a process that ends.
    assert len({pid for _, pid, *_ in ledger(tmp_path)}) == 6
