"""Many small runs while workers are killed at random, and their driver once.

    python benchmarks/chaos.py --runs 100 --every 5

The driver is `hopscope train … --workers N` in a process of its own. Every few seconds one of its
workers is killed, once the driver itself, and the same command is started again. At the end there
are exactly as many complete runs, none was written to again once it was complete, all hold the
bytes of runs that nobody disturbed, and no process or temporary file is left.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.errors import StoreError
from hopscope.store import RunFolder, Store
from hopscope.store.manifest import MANIFEST
from hopscope.workers import Here, carry_out
from hopscope.workers.packing import PACKED

PATIENCE = 60.0
"""Seconds after which workers without a driver must be gone."""


def recipe(steps: int, seeds: tuple[int, ...]) -> Experiment:
    return Experiment(
        task=Retrieval(hops=1, chains=2),
        model=Model(layers=1, heads=1, d_model=16),
        training=Training(
            steps=steps, batch=8, examples=64, checkpoint_every=max(1, steps // 4),
            validation_examples=8, precision="float32",
        ),
        seeds=seeds,
    )  # fmt: skip


def children(parent: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


class Ledger:
    """When each run was written to last, from the moment that it is complete."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.complete: dict[str, int] = {}
        self.again: set[str] = set()

    def look(self) -> None:
        for path in self.store.glob(f"[!.]*/{MANIFEST}"):
            name = path.parent.name
            try:
                written = path.stat().st_mtime_ns
                done = name in self.complete or RunFolder(path.parent).manifest.complete
            except (OSError, StoreError):  # a fleet that was parted
                continue
            if not done or (path.parent / PACKED).exists():
                continue
            if self.complete.setdefault(name, written) != written:
                self.again.add(name)


class Chaos:
    """One driver after another, until a command comes to its end."""

    def __init__(self, chosen: argparse.Namespace, root: Path) -> None:
        self.chosen, self.store, self.temporary = chosen, root / "runs", root / "tmp"
        self.temporary.mkdir()
        file, seeds = root / "recipe.json", f"0..{chosen.runs - 1}"
        file.write_text(recipe(chosen.steps, (0,)).to_file())
        self.command = [
            sys.executable, "-m", "hopscope", "train", str(file), "--seeds", seeds,
            "--workers", str(chosen.workers), "--pack", str(chosen.pack), "--device", "cpu",
            "--threads", "1", "--store", str(self.store),
        ]  # fmt: skip
        self.ledger = Ledger(self.store)
        self.kills, self.seen, self.drivers = 0, set[int](), 0

    def drive(self) -> subprocess.Popen[bytes]:
        self.drivers += 1
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, env=environment)

    def run(self) -> int:
        """The exit code of the command that nobody killed."""
        driver, due = self.drive(), time.monotonic() + self.chosen.every
        while driver.poll() is None:
            time.sleep(0.1)
            self.ledger.look()
            workers = children(driver.pid)
            self.seen.update(workers)
            if self.drivers == 1 and len(self.ledger.complete) >= self.chosen.runs // 2:
                driver.kill()
                driver.wait()
                driver = self.drive()
            elif workers and time.monotonic() >= due:
                self.kill(random.choice(workers))
                due = time.monotonic() + self.chosen.every
        self.ledger.look()
        return driver.returncode

    def kill(self, worker: int) -> None:
        try:
            os.kill(worker, 9)
        except ProcessLookupError:
            return
        self.kills += 1

    def left(self) -> list[int]:
        """Workers that are still there when they should be gone."""
        end = time.monotonic() + PATIENCE
        while (found := [pid for pid in self.seen if Path(f"/proc/{pid}").exists()]) and (
            time.monotonic() < end
        ):
            time.sleep(0.2)
        return found


def same(ours: Store, its: Store) -> int:
    """How many runs hold the same bytes, clocks left out."""
    equal = 0
    for name in its.names():
        one, other = ours.find(name), its.find(name)
        files = [
            {file: run.read(file) for file in run.manifest.files if file.startswith("checkpoints")}
            for run in (one, other)
        ]
        equal += files[0] == files[1]
    return equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pack", type=int, default=1)
    parser.add_argument("--every", type=float, default=5.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(chosen, Path(folder))
        codes = [chaos.run()]
        while codes[-1] and len(codes) < 5:  # a run may still have been held by a dying worker
            codes.append(chaos.run())
        serial = Store(Path(folder) / "serial")
        recipes = [recipe(chosen.steps, (seed,)) for seed in range(chosen.runs)]
        carry_out(recipes, serial, device="cpu", threads=1, workers=Here(chosen.pack))
        store = Store(chaos.store)
        row = {
            "benchmark": "chaos", "runs": chosen.runs, "workers_killed": chaos.kills,
            "drivers": chaos.drivers, "exit_codes": codes,
            "complete": len(chaos.ledger.complete), "in_store": len(store.names()),
            "trained_again": sorted(chaos.ledger.again), "same_as_serial": same(store, serial),
            "processes_left": len(chaos.left()),
            "temporary_files_left": len([*chaos.temporary.iterdir()]),
        }  # fmt: skip
        print(json.dumps(row))


if __name__ == "__main__":
    main()
