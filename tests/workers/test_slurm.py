"""The job script on a real SLURM of one node: shares, the warning before the end, requeueing."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE, files, smallest, until

from hopscope.configs import Experiment
from hopscope.machine import cores
from hopscope.store import Store
from hopscope.store.manifest import read_manifest
from hopscope.workers import Here, carry_out
from hopscope.workers.fleets import together
from hopscope.workers.job import is_complete
from hopscope.workers.slurm import Array

CONFIG = """\
ClusterName=hopscope
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SwitchType=switch/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
Call = Callable[..., str]


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """Calls a command of a SLURM that has this machine as its only node."""
    if shutil.which("slurmctld") is None or os.getuid() != 0:
        pytest.skip("needs root and SLURM: apt-get install -y slurm-wlm")
    folder = Path(tempfile.mkdtemp(prefix="hs-", dir="/tmp"))  # names of sockets: 107 bytes
    for inner in ("state", "spool", "munge"):
        (folder / inner).mkdir(mode=0o700)
    (folder / "munge" / "key").write_bytes(os.urandom(1_024))
    (folder / "munge" / "key").chmod(0o400)
    config = CONFIG.format(folder=folder, host=socket.gethostname(), cores=cores())
    (folder / "slurm.conf").write_text(config)
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))

    def call(*words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    munge = {each: f"{folder}/munge/{each[1:]}" for each in ("-key", "-socket", "-pid", "-log")}
    try:
        call("munged", "--force", f"--key-file={munge['-key']}", f"--socket={munge['-socket']}",
             f"--pid-file={munge['-pid']}", f"--log-file={munge['-log']}",
             f"--seed-file={folder}/munge/seed")  # fmt: skip
        call("slurmctld", "-c")
        call("slurmd", "-c")
        until(lambda: "idle" in call("sinfo", "--noheader", "--format=%T"))
        yield call
    finally:
        for name in ("slurmd.pid", "slurmctld.pid", "munge/pid"):
            if (folder / name).exists():
                subprocess.run(["kill", (folder / name).read_text().strip()], check=False)
        time.sleep(1)  # slurmd writes its state
        shutil.rmtree(folder)


@pytest.mark.slow
def test_an_array_is_stopped_requeued_and_ends_with_the_bytes_of_one_by_one(
    slurm: Call, tiny: Experiment, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = smallest(tiny, steps=1_500, checkpoint_every=500, validate_every=500)
    recipes = [long.replace(seeds=(seed,)) for seed in range(5)]
    (tmp_path / "sweep.json").write_text(f"[{', '.join(each.to_file() for each in recipes)}]")
    monkeypatch.chdir(tmp_path)
    script = Array(tmp_path / "sweep.json", store.root, shards=2, cpus=1).script()
    (tmp_path / "job.sh").write_text(script)
    job = slurm("sbatch", "--parsable", "job.sh").strip()
    fleet = store.root / together(recipes[:4]).run_name()
    until(lambda: fleet.exists() and read_manifest(fleet).step >= 500)
    slurm("scancel", "--signal=USR1", "--batch", f"{job}_1")  # as SLURM does before the end
    waiting = ("squeue", "--noheader", f"--job={job}_1", "--format=%T %r")
    until(lambda: slurm(*waiting).strip() == "PENDING BeginTime")
    # Or it waits two minutes. SLURM refuses a job that begins in the second of its stop.
    time.sleep(3)
    slurm("scontrol", "update", f"JobId={job}_1", "StartTime=now")
    until(lambda: all(is_complete(recipe, store) for recipe in recipes))
    until(lambda: not slurm("squeue", "--noheader").strip())
    logs = [path.read_text() for path in tmp_path.glob("*.log")]
    assert sum("stopped by SIGUSR1" in log for log in logs) == 1
    serial = Store(tmp_path / "serial")
    assert carry_out(recipes, serial, device="cpu", workers=Here(threads=1)).complete
    assert sorted(store.names()) == sorted(serial.names())
    for recipe in recipes:
        assert files(store, recipe) == files(serial, recipe)
