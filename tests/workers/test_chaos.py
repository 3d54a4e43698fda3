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
OFTEN = 0.02
"""The chance that a worker is killed at a look."""
RUNS = int(os.environ.get("HOPSCOPE_CHAOS", "9"))


class Chaos:
    """Commands that train the runs of a store, and the killing of their workers."""

    def __init__(self, commands: list[list[str]], store: Store, errors: Path) -> None:
        self.commands, self.store, self.errors = commands, store, errors
        self.drivers = [self.started(command) for command in commands]
        self.chance, self.killed = Random(45), 0
        self.complete: dict[str, int] = {}
        self.first: dict[tuple[str, int], int] = {}
        """The step of each run when each of its holders was first seen."""

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
        if diligent and self.chance.random() < OFTEN:
            os.kill(self.chance.choice(diligent), signal.SIGKILL)
            self.killed += 1
            if self.killed == 2:
                self.drivers[0].kill()


@pytest.mark.parametrize("way", ["processes", "ray", "shards"])
def test_all_are_complete_and_equal_to_one_after_the_other(
    way: str, tiny: Experiment, store: Store, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fields = tiny.model_dump()
    fields["training"] |= {"steps": 200, "checkpoint_every": 10, "validate_every": 100}
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
