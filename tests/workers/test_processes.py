"""Several processes: the job of a killed one goes on, and none is left behind.

Most workers here are fakes of a few lines, which speak as real ones do and start at once.
"""

import sys
import time
from collections import deque
from functools import partial
from pathlib import Path

import pytest
from waiting import alive, ctrl_c

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, Interrupted, TrainingError
from hopscope.runs import Stop
from hopscope.store import Store
from hopscope.workers import Here, Job, Processes, Report, pools
from hopscope.workers.fleets import together
from hopscope.workers.sweep import ATTEMPTS, _Sweep, _Task

FAKE = """
import json, os, pathlib, signal, sys, time
HERE = pathlib.Path(os.environ["FAKE"])
asked = HERE / f"asked-{os.getpid()}"
signal.signal(signal.SIGTERM, lambda *_: asked.touch())
for line in sys.stdin:
    job = json.loads(line)
    recipe = job["recipes"][0]
    seed = recipe["seeds"][0]
    with open(HERE / "record", "a") as file:
        file.write(f"{seed} {os.getpid()} {job['threads']} {os.environ['OMP_NUM_THREADS']}\\n")
    told = dict(name=str(seed))
    BEHAVIOUR
    print(json.dumps([told]), flush=True)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Workers that behave as these lines say."""
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setattr(pools, "cores", lambda: 4)

    def behave(*lines: str) -> None:
        code = FAKE.replace("BEHAVIOUR", "\n    ".join(lines))
        monkeypatch.setattr(pools, "WORKER_COMMAND", [sys.executable, "-c", code])

    return behave


@pytest.fixture
def jobs(tiny: Experiment, store: Store) -> list[Job]:
    return [Job.of((tiny.replace(seeds=(seed,)),), store, "cpu", 2) for seed in range(6)]


def record(tmp_path: Path) -> list[list[int]]:
    return [[*map(int, line.split())] for line in (tmp_path / "record").read_text().splitlines()]


def reports(
    pool: Processes, jobs: list[Job], stop: Stop | None = None, look=None
) -> dict[str, Report]:
    """What is reported of all jobs, by the name of the run."""
    stop = stop or Stop()
    sweep = _Sweep(Store(jobs[0].store), pool, stop, "cpu", look)
    with stop.listening(), pool.open(jobs, stop) as workers:
        sweep._hand_out(deque(map(_Task, jobs)), workers)
    return sweep.reports


def test_jobs_are_shared_out_with_a_share_of_the_cores(fake, jobs, tmp_path: Path) -> None:
    fake("time.sleep(0.05)")
    assert sorted(reports(Processes(2), jobs)) == [*"012345"]
    entries = record(tmp_path)
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
    assert sorted(reports(Processes(2), jobs)) == [*"012345"]
    assert sorted(seed for seed, *_ in record(tmp_path)) == [0, 1, 1, 2, 3, 3, 4, 5, 5]


def test_a_job_that_kills_its_worker_is_a_failure(
    fake, jobs, tmp_path: Path, tiny: Experiment, store: Store
) -> None:
    fake("if seed == 1:", "    sys.stderr.write('no memory left\\n')", "    sys.stderr.flush()",
         "    os.kill(os.getpid(), signal.SIGKILL)")  # fmt: skip
    (bad,) = [each for each in reports(Processes(2), jobs).values() if each.state == "failed"]
    error = bad.trouble()
    assert isinstance(error, TrainingError)
    line = f"its worker died {ATTEMPTS} times in a row without a new checkpoint (SIGKILL; no memo"
    assert str(error).startswith(f"{tiny.replace(seeds=(1,)).run_name()}: {line}")
    assert sorted(seed for seed, *_ in record(tmp_path)) == [0, *ATTEMPTS * [1], 2, 3, 4, 5]


def test_only_deaths_without_a_new_checkpoint_count(tiny: Experiment, store: Store) -> None:
    task = _Task(Job.of((tiny.replace(seeds=(0,)), tiny.replace(seeds=(1,))), store, "cpu", 1))
    folder = store.create(together((tiny.replace(seeds=(0,)), tiny.replace(seeds=(1,)))))
    for step in (1, 2):
        for _ in range(ATTEMPTS - 1):
            assert not task.died()
        with folder.locked():
            folder.commit({}, step=step)
    assert [task.died() for _ in range(ATTEMPTS)] == [False] * (ATTEMPTS - 1) + [True]


def test_what_nobody_foresaw_is_raised(fake, jobs, tmp_path: Path) -> None:
    fake("if seed == 2: 1 / 0", "time.sleep(0.2)")
    with pytest.raises(RuntimeError, match=r"a worker failed \(exit code 1\): .*ZeroDivisionError"):
        reports(Processes(2), jobs)
    assert not any(alive(pid) for _, pid, *_ in record(tmp_path))


def test_asked_to_stop_once_workers_end_by_themselves(fake, jobs, tmp_path: Path) -> None:
    fake("while not asked.exists(): time.sleep(0.01)")
    stop = Stop()
    begun = time.monotonic()

    def look(_: object) -> None:
        if (tmp_path / "record").exists() and len(record(tmp_path)) >= 2:
            stop.ask("enough")

    assert sorted(reports(Processes(2), jobs, stop, look)) == ["0", "1"]  # no other was begun
    assert time.monotonic() - begun < 60
    assert not any(alive(pid) for _, pid, *_ in record(tmp_path))


def test_ctrl_c_once_asks_and_twice_kills(fake, jobs, tmp_path: Path) -> None:
    fake("while True: time.sleep(0.01)")

    def work() -> bool:
        return (tmp_path / "record").exists() and len(record(tmp_path)) >= 2

    def asked() -> bool:
        return any(tmp_path.glob("asked-*"))

    with pytest.raises(KeyboardInterrupt) as caught, ctrl_c(work, asked):
        reports(Processes(2), jobs)
    assert not isinstance(caught.value, Interrupted)
    assert not any(alive(pid) for _, pid, *_ in record(tmp_path))


def test_a_worker_that_does_not_end_is_killed(
    fake, jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its exit, idle or after it failed."""
    monkeypatch.setattr(pools, "ENDING", 0.3)
    fake("import atexit", "atexit.register(time.sleep, 60)",
         "if seed == 1:", "    os.close(1)", "    sys.exit()")  # fmt: skip
    begun = time.monotonic()
    states = [each.state for each in reports(Processes(2), jobs[:3]).values()]
    assert sorted(states) == ["complete", "complete", "failed"]
    assert time.monotonic() - begun < 50
    assert not any(alive(pid) for _, pid, *_ in record(tmp_path))


def test_more_than_there_is_is_refused(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "cores", lambda: 4)
    with pytest.raises(ConfigError, match="workers is 5; expected 1 to 4, as many as there are"):
        Processes(5)
    with pytest.raises(ConfigError, match="workers is 0; expected 1 to 4"):
        Processes(0)
    assert Processes(2).job_threads == Processes(2, threads=2).job_threads == 2
    for pool in (Here, partial(Processes, 2)):
        with pytest.raises(ConfigError, match="threads is 0; expected 1 to 1,024"):
            pool(threads=0)
    with pytest.raises(ConfigError, match="2 workers with 3 threads each need 6 cores, and there"):
        Processes(2, threads=3)
    with pytest.raises(ConfigError, match="device is 'cuda', but torch sees no GPU"):
        reports(Processes(2), [jobs[0].replace(device="cuda")])
    with pytest.raises(ConfigError, match="'cuda:1', but each worker is given its own GPU"):
        reports(Processes(2), [jobs[0].replace(device="cuda:1")])


def test_each_worker_has_a_gpu(fake, jobs, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(pools, "gpus_for", lambda devices: ["0", "3"])
    fake("(HERE / f'gpu-{seed}').write_text(os.environ['CUDA_VISIBLE_DEVICES'])",
         "time.sleep(0.3 if seed < 2 else 0)")  # fmt: skip
    reports(Processes(2), jobs)
    assert {(tmp_path / f"gpu-{seed}").read_text() for seed in (0, 1)} == {"0", "3"}
    # A GPU's memory is given back whole by a process that ends.
    assert len({pid for _, pid, *_ in record(tmp_path)}) == 6
