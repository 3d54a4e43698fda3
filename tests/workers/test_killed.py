"""Sweeps that are interrupted or killed: nobody is left, the rest is done afterwards, and ends with
the same bytes. `tests/torture/` kills more of them.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from waiting import PATIENCE, files, until

from hopscope.configs import Experiment
from hopscope.errors import Interrupted
from hopscope.runs import train
from hopscope.store import Store
from hopscope.store.lock import holder_of, lock_content
from hopscope.workers import Processes, carry_out
from hopscope.workers.cluster import Cluster
from hopscope.workers.pools import Pool

pytestmark = pytest.mark.slow


@pytest.fixture
def recipe(tiny: Experiment) -> Experiment:
    """So long that it can be killed three times, and so short that nobody minds."""
    fields = tiny.model_dump()
    fields["training"] |= {"steps": 600, "checkpoint_every": 20, "validate_every": 200}
    fields["model"] |= {"layers": 1, "heads": 1, "d_model": 8}
    return Experiment.model_validate(fields)


def stat(pid: int) -> list[str]:
    """State, parent and more of a process; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"]


def alive(pid: int) -> bool:
    return stat(pid)[0] not in "ZX"


class Run:
    """One run, as others see it."""

    def __init__(self, recipe: Experiment, store: Store) -> None:
        self.path = store.root / recipe.run_name()

    @property
    def holder(self) -> int | None:
        """The process that trains it."""
        holder = holder_of(self.path)
        return holder.pid if holder else None

    @property
    def step(self) -> int:
        return int(json.loads((self.path / "manifest.json").read_text())["step"])

    def further(self) -> int:
        """Wait until somebody brings it further; who that is."""
        until(lambda: self.holder)
        before = self.step
        until(lambda: self.holder and self.step > before)
        assert self.holder is not None
        return self.holder


def test_whoever_is_killed_the_same_command_ends_with_the_same_bytes(
    recipe: Experiment, store: Store, tmp_path: Path, ray: str
) -> None:
    """A worker, its machine, and the driver, which is started again at once."""
    (tmp_path / "recipe.json").write_text(recipe.to_file())
    command = [
        sys.executable, "-m", "hopscope", "train", str(tmp_path / "recipe.json"), "--store",
        str(store.root), "--device", "cpu", "--threads", "1", "--workers", "ray",
        "--cpus-per-run", "0.5", "--address", ray,
    ]  # fmt: skip
    run = Run(recipe, store)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as driver:
        os.kill(run.further(), signal.SIGKILL)
        os.kill(int(stat(run.further())[1]), signal.SIGKILL)
        worker = run.further()
        driver.kill()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    told = done.stdout.splitlines()[-1:]
    assert (done.returncode, told) == (0, ["1 of 1 runs are complete"]), done.stderr
    until(lambda: not alive(worker))
    serial = Store(tmp_path / "serial")
    train(recipe, serial, "cpu", threads=1)
    assert files(store, recipe) == files(serial, recipe)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("kind", ["processes", "ray"])
def test_ctrl_c_once_asks_for_a_checkpoint_and_twice_ends_all(
    kind: str, times: int, recipe: Experiment, store: Store, request: pytest.FixtureRequest
) -> None:
    pool: Pool = Processes(1, threads=1)
    if kind == "ray":
        pool = Cluster(request.getfixturevalue("ray"), cpus=0.5)
    run, workers = Run(recipe, store), []

    def press() -> None:
        workers.append(run.further())
        if times == 2:  # a worker that does not answer
            os.kill(workers[0], signal.SIGSTOP)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    hand = threading.Thread(target=press)
    hand.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        carry_out([recipe], store, device="cpu", workers=pool)
    hand.join()
    assert isinstance(caught.value, Interrupted) == (times == 1)
    until(lambda: not alive(workers[0]))
    assert (lock_content(run.path) == b"") == (times == 1)
    assert 0 < run.step < recipe.steps
    if times == 1:
        assert str(caught.value).startswith(f"stopped by SIGINT at step {run.step:,}, where it")
