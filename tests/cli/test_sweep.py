"""`hopscope sweep`, `sweep plan` and `sweep slurm`, as a user calls them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import Say

from hopscope.store import Store

FILE = """
from hopscope import Experiment, Model, Retrieval, Training
TRAINING = Training(
    steps={steps}, batch=4, examples=16, checkpoint_every={steps}, validation_examples=4,
    precision="float32",
)
def recipes():
    for heads in (1, 2):
        for seed in range(2):
            yield Experiment(
                task=Retrieval(hops=1, chains=2), model=Model(layers=1, heads=heads, d_model=8),
                training=TRAINING, seeds=(seed,),
            )
"""


@pytest.fixture
def file(root: Path) -> Path:
    path = root / "sweep.py"
    path.write_text(FILE.format(steps=6))
    return path


def test_shares_are_planned_and_carried_out_together(hopscope: Say, file: Path, root: Path) -> None:
    plan = ("sweep", "plan", str(file))
    for words, jobs in {"--pack 1": "2 × 1", "--workers 1": "1 × 2"}.items():
        out = hopscope(*plan, *words.split())[1]
        assert out.count(jobs) == 2
        assert "0 of 4 runs are complete; the time of 2 settings is unknown until" in out
    code, out, _ = hopscope("sweep", str(file), "--shard", "1/2", "--threads", "1")
    assert (code, out.splitlines()[-1]) == (0, "2 of 2 runs are complete")
    assert len(Store(root / "runs").names()) == 2
    rows = json.loads(hopscope(*plan, "--json")[1])
    assert [(row["seeds"], row["runs"]) for row in rows] == [([0, 1], 2)] * 2
    assert sorted((row["complete"], row["missing"]) for row in rows) == [(0, 2), (2, 0)]
    assert sorted(str(row["hours"]) for row in rows) == ["0.0", "None"]  # of one nothing is known
    assert hopscope("sweep", str(file), "--shard", "2/2", "--threads", "1")[0] == 0
    assert hopscope("sweep", str(file))[1] == "4 of 4 runs are complete\n"
    out = hopscope(*plan)[1]
    assert out.splitlines()[-1] == "4 of 4 runs are complete"


def test_a_run_that_fails_stops_no_other(hopscope: Say, file: Path, root: Path) -> None:
    assert hopscope("sweep", str(file), "--shard", "1/4", "--threads", "1")[0] == 0
    store = Store(root / "runs")
    (store.root / store.names()[0] / "manifest.json").write_text("{}")
    code, out, err = hopscope("sweep", str(file), "--threads", "1")
    assert (code, out.splitlines()[-1]) == (2, "3 of 4 runs are complete")
    assert err.startswith("hopscope: ")
    rows = json.loads(hopscope("sweep", "plan", str(file), "--json")[1])
    assert sorted((row["damaged"], row["complete"]) for row in rows) == [(0, 2), (1, 1)]


def test_time_that_is_up_asks_to_be_queued_again(hopscope: Say, file: Path, root: Path) -> None:
    file.write_text(FILE.format(steps=100_000))
    code, out, _ = hopscope("sweep", str(file), "--time-limit", "0.001", "--threads", "1")
    assert (code, out.splitlines()[-1]) == (75, "0 of 4 runs are complete")


def test_an_empty_share_is_no_mistake(hopscope: Say, file: Path) -> None:
    told = [
        hopscope("sweep", "plan", str(file), "--shard", f"{k}/5", "--json") for k in range(1, 6)
    ]
    (empty,) = (k for k, (_, out, _) in enumerate(told, 1) if json.loads(out) == [])
    code, out, _ = hopscope("sweep", str(file), "--shard", f"{empty}/5")
    assert (code, out) == (0, f"share {empty}/5 is empty: there are fewer pieces than shares\n")


@pytest.mark.slow
def test_the_job_script_queues_itself_again(hopscope: Say, file: Path, root: Path) -> None:
    """As SLURM would: the script alone gets the signal."""
    file.write_text(FILE.format(steps=10_000_000))
    code, script, err = hopscope("sweep", "slurm", str(file), "--shards", "4", "--cpus", "1")
    assert (code, err) == (0, "hopscope: save it, read it, and submit it with sbatch\n")
    assert "#SBATCH --array=1-4\n" in script
    assert "#SBATCH --signal=B:USR1@120\n" in script
    assert "--gres" not in script
    (root / "job.sh").write_text(script)
    (root / "scontrol").write_text('#!/bin/sh\necho "$@" > queued\n')
    (root / "scontrol").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{root}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "2", "SLURM_CPUS_PER_TASK": "1",
    }  # fmt: skip
    with (root / "log").open("w") as log:
        job = subprocess.Popen(["bash", "job.sh"], env=environment, stdout=log, stderr=log)
    wait_for(lambda: any((root / "runs").glob("*/checkpoints/*")), root / "log")
    job.send_signal(signal.SIGUSR1)
    assert job.wait(60) == 75, (root / "log").read_text()
    assert (root / "queued").read_text() == "requeue 17_2\n"
    (run,) = Store(root / "runs").listed()[0]
    assert run.state == "stopped"
    assert run.step


def wait_for(there: Callable[[], bool], log: Path, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)
