"""Many small runs whose workers are killed again and again, and the command once, end with the same
bytes as one after the other: in processes, over Ray, and as two shards.

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
from waiting import PATIENCE, files

from hopscope.configs import Experiment
from hopscope.errors import StoreError
from hopscope.store import RunFolder, Store
from hopscope.store.lock import holder_of
from hopscope.store.manifest import MANIFEST
from hopscope.workers import Here, carry_out

pytestmark = pytest.mark.slow
RUNS = int(os.environ.get("HOPSCOPE_CHAOS", "9"))
EVERY = 3.0
"""Seconds between kills, on average."""


class Chaos:
    """Commands that train a store, and somebody who kills whoever trains."""

    def __init__(self, commands: list[list[str]], store: Store, errors: Path) -> None:
        self.commands, self.store, self.errors = commands, store, errors
        self.drivers = [self.started(command) for command in commands]
        self.chance, self.killed, self.next = Random(45), 0, time.monotonic()
        self.complete: dict[str, int] = {}

    def started(self, command: list[str]) -> subprocess.Popen[str]:
        with self.errors.open("a") as errors:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, text=True)

    def goes_on(self) -> bool:
        """Start each command again that was killed; False when all have ended well."""
        for place, driver in enumerate(self.drivers):
            if driver.poll() not in (None, 0):
                assert driver.returncode == -signal.SIGKILL, self.errors.read_text()
                self.drivers[place] = self.started(self.commands[place])
        return any(driver.poll() is None for driver in self.drivers)

    def look(self) -> None:
        """What is complete stays as it is; every now and then kill whoever trains a run."""
        holders = []
        for path in self.store.root.glob(f"[!.]*/{MANIFEST}"):
            try:
                run = RunFolder(path.parent)
            except StoreError:  # a fleet that was just parted
                continue
            if run.manifest.complete and len(run.recipe.seeds) == 1:
                written = path.stat().st_mtime_ns
                assert self.complete.setdefault(run.name, written) == written
            holder = holder_of(run.path)
            if holder and holder.pid:
                holders.append(holder.pid)
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + self.chance.uniform(0, 2 * EVERY)
        if holders:  # at a moment that does not depend on when they began
            os.kill(self.chance.choice(holders), signal.SIGKILL)
            self.killed += 1
            if self.killed == 2:
                self.drivers[0].kill()


@pytest.mark.parametrize("way", ["processes", "ray", "shards"])
def test_all_are_complete_and_equal_to_one_after_the_other(
    way: str, tiny: Experiment, store: Store, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fields = tiny.model_dump()
    fields["training"] |= {"steps": 400, "checkpoint_every": 20, "validate_every": 200}
    fields["model"] |= {"layers": 1, "heads": 1, "d_model": 8}
    recipes = [Experiment.model_validate({**fields, "seeds": (seed,)}) for seed in range(RUNS)]
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
        commands = [[*sweep, "--workers", "ray", "--address", address, "--cpus-per-run", "0.5"]]
    else:
        commands = [[*sweep, "--workers", "2"]]
    chaos, end = Chaos(commands, store, tmp_path / "errors"), time.monotonic() + 10 * PATIENCE
    while chaos.goes_on():
        assert time.monotonic() < end, "it hangs"
        chaos.look()
        time.sleep(0.05)
    assert chaos.killed >= 2
    serial = Store(tmp_path / "serial")
    assert carry_out(recipes, serial, device="cpu", workers=Here(threads=1)).complete
    assert sorted(store.names()) == sorted(serial.names()) == sorted(r.run_name() for r in recipes)
    for recipe in recipes:
        assert files(store, recipe) == files(serial, recipe)
