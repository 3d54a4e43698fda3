"""Sweeps whose workers, machine and driver are killed, or that are interrupted: the same command
ends with the same bytes as one run after the other. `tests/torture/` kills single commands.

HOPSCOPE_CHAOS=100 says how many runs.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from waiting import alive, ctrl_c, files, smallest, stat, until

from hopscope.configs import Experiment
from hopscope.errors import Interrupted, StoreError
from hopscope.store import RunFolder, Store
from hopscope.store.lock import holder_of, lock_content
from hopscope.store.manifest import MANIFEST, read_manifest
from hopscope.workers import Here, Processes, carry_out
from hopscope.workers.cluster import Cluster
from hopscope.workers.pools import Pool

pytestmark = pytest.mark.slow
OFTEN = 0.02
"""The chance that a worker is killed at a look; the first two are in any case."""
RUNS = int(os.environ.get("HOPSCOPE_CHAOS", "9"))
LIMIT = 60.0 * max(10, RUNS)
"""Seconds for the runs, on a machine that does much else. pyproject.toml ends a test after 900."""


def parent(pid: int) -> int:
    if not alive(pid):
        raise ProcessLookupError(pid)
    return int(stat(pid)[1])


class Chaos:
    """Commands that train the runs of a store, and the killing of their workers, and of the machine
    of one: over Ray, a worker's parent is what makes a machine.
    """

    def __init__(
        self, commands: list[list[str]], store: Store, errors: Path, *, machines: bool
    ) -> None:
        self.commands, self.store, self.errors = commands, store, errors
        self.machines = machines
        self.drivers = [self.started(command) for command in commands]
        self.chance, self.killed = Random(45), 0
        self.complete: dict[str, int] = {}
        self.first: dict[tuple[str, int], int] = {}
        """The step of each run when each of its holders was first seen."""

    def started(self, command: list[str]) -> subprocess.Popen[str]:
        with self.errors.open("a") as errors:
            return subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=errors, text=True,
                env=os.environ | {"PYTHONFAULTHANDLER": "1"},
            )  # fmt: skip

    def goes_on(self) -> bool:
        """Start each command again that was killed; False when all have ended well."""
        for place, driver in enumerate(self.drivers):
            if driver.poll() not in (None, 0):
                assert driver.returncode == -signal.SIGKILL, self.errors.read_text()
                self.drivers[place] = self.started(self.commands[place])
        return any(driver.poll() is None for driver in self.drivers)

    def stacks(self) -> str:
        """End the drivers. Returns what they printed, and where their threads were."""
        for driver in self.drivers:
            driver.send_signal(signal.SIGABRT)
            driver.wait(60)
        return self.errors.read_text()

    def look(self) -> None:
        """What is complete stays as it is. Kill workers that have brought their run further: one
        that dies again and again without doing so is given up.
        """
        diligent = []
        for path in self.store.root.glob(f"[!.]*/{MANIFEST}"):
            try:
                run = RunFolder(path.parent)
            except StoreError:  # a fleet that was just parted
                continue
            if run.manifest.complete and len(run.recipe.seeds) == 1:
                written = path.stat().st_mtime_ns
                assert self.complete.setdefault(run.name, written) == written
            holder, step = holder_of(run.path), run.manifest.step
            if holder and holder.pid and step > self.first.setdefault((run.name, holder.pid), step):
                diligent.append(holder.pid)
        if diligent and (self.killed < 2 or self.chance.random() < OFTEN):
            victim = self.chance.choice(diligent)
            try:
                machine = self.machines and not self.killed
                os.kill(parent(victim) if machine else victim, signal.SIGKILL)
            except ProcessLookupError:  # it has just ended
                return
            self.killed += 1
            if self.killed == 2:
                self.drivers[0].kill()


@pytest.mark.parametrize("way", ["processes", "ray", "shards"])
def test_all_are_complete_and_equal_to_one_after_the_other(
    way: str, tiny: Experiment, store: Store, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    short = smallest(tiny, steps=200, checkpoint_every=10, validate_every=100)
    recipes = [short.replace(seeds=(seed,)) for seed in range(RUNS)]
    file = tmp_path / "sweep.json"
    file.write_text(f"[{', '.join(each.to_file() for each in recipes)}]")
    sweep = [
        sys.executable, "-m", "hopscope", "sweep", str(file), "--store", str(store.root),
        "--device", "cpu", "--threads", "1",
    ]  # fmt: skip
    if way == "shards":
        commands = [[*sweep, "--shard", f"{number}/2"] for number in (1, 2)]
    elif way == "ray":
        address = request.getfixturevalue("ray")
        commands = [[*sweep, "--workers", f"ray={address}", "--cpus", "0.5"]]
    else:
        commands = [[*sweep, "--workers", "2"]]
    chaos, end = (
        Chaos(commands, store, tmp_path / "errors", machines=way == "ray"),
        time.monotonic() + LIMIT,
    )
    while chaos.goes_on():
        assert time.monotonic() < end, f"it hangs: {chaos.stacks()}"
        chaos.look()
        time.sleep(0.05)
    assert chaos.killed >= 2
    serial = Store(tmp_path / "serial")
    assert carry_out(recipes, serial, device="cpu", workers=Here(threads=1)).complete
    assert sorted(store.names()) == sorted(serial.names()) == sorted(r.run_name() for r in recipes)
    for recipe in recipes:
        assert files(store, recipe) == files(serial, recipe)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("kind", ["processes", "ray"])
def test_ctrl_c_once_asks_for_a_checkpoint_and_twice_ends_all(
    kind: str, times: int, tiny: Experiment, store: Store, request: pytest.FixtureRequest
) -> None:
    recipe = smallest(tiny, steps=20_000, checkpoint_every=20, validate_every=200)
    pool: Pool = Processes(1, threads=1)
    if kind == "ray":
        pool = Cluster(request.getfixturevalue("ray"), cpus=0.5)
    path, workers = store.root / recipe.run_name(), []
    usual = signal.getsignal(signal.SIGINT)

    def trains() -> bool:
        holder = holder_of(path)
        if holder is None or not read_manifest(path).step:
            return False
        workers.append(holder.pid)
        if times == 2:  # a worker that does not answer
            os.kill(workers[0], signal.SIGSTOP)
        return True

    def noted() -> bool:
        """Was the first one seen? Two at once would be one."""
        return signal.getsignal(signal.SIGINT) is usual

    with pytest.raises(KeyboardInterrupt) as caught, ctrl_c(*(trains, noted)[:times]):
        carry_out([recipe], store, device="cpu", workers=pool)
    assert isinstance(caught.value, Interrupted) == (times == 1)
    until(lambda: not alive(workers[0]))
    assert (lock_content(path) == b"") == (times == 1)
    step = read_manifest(path).step
    assert 0 < step < recipe.steps
    if times == 1:
        assert str(caught.value).startswith(f"stopped by SIGINT at step {step:,}, where it")
