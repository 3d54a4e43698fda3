"""Many small runs while workers are killed at random, machines removed, and the driver killed once.

    python benchmarks/chaos.py                    # two processes of one machine
    python benchmarks/chaos.py --ray --pack 5     # a Ray of two machines, which are processes here

The driver is `hopscope train … --workers …` in a process of its own. Every few seconds one of its
workers is killed; of a Ray, a machine is removed twice; once the driver itself is killed, and the
same command is started again. At the end there are exactly as many complete runs, none was written
to again once it was complete, all hold the bytes of runs that nobody disturbed, and no process or
temporary file is left. A worker needs a few seconds before it begins: on a busy machine, kill less
often (`--every`). The rows of results/chaos.jsonl:

    (python benchmarks/chaos.py; python benchmarks/chaos.py --ray --pack 5) > results/chaos.jsonl
"""

import argparse
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.errors import StoreError
from hopscope.store import RunFolder, Store
from hopscope.store.manifest import MANIFEST
from hopscope.workers import Here, carry_out
from hopscope.workers.packing import PACKED, member

MINI_CLUSTER = Path(__file__).parents[1] / "tests" / "workers" / "mini_cluster.py"
PATIENCE = 120.0
"""Seconds within which a cluster starts, and within which whoever has no driver is gone."""
REMOVALS = (0.2, 0.35)
"""Shares of complete runs at which a machine of the Ray is removed."""
DRIVER = 0.5
"""The share at which the driver is killed."""
CACHE = "torchinductor_"
"""What torch keeps from one process to the next among the temporary files, under one name."""


def recipe(steps: int) -> Experiment:
    return Experiment(
        task=Retrieval(hops=1, chains=2),
        model=Model(layers=1, heads=1, d_model=16),
        training=Training(
            steps=steps, batch=8, examples=64, checkpoint_every=max(1, steps // 4),
            validation_examples=8, precision="float32",
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Process:
    """A process that is known again, though its number may be given anew."""

    pid: int
    born: str
    words: str

    @property
    def works(self) -> bool:
        """Is it a worker with a job?"""
        return self.words.startswith("ray::carried") or "hopscope.workers.worker" in self.words

    @property
    def is_machine(self) -> bool:
        """Is it what a machine of a Ray stands on? The head has no room for jobs."""
        return "raylet/raylet" in self.words and "--head" not in self.words


def descendants(roots: set[int]) -> list[Process]:
    """The processes that these have started, and those that those have."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *fields = entry.read_text().rpartition(")")[2].split()
            if state != "Z":
                parents.setdefault(int(parent), []).append((int(entry.parent.name), fields[17]))
    found, left = [], [*roots]
    while left:
        for pid, born in parents.get(left.pop(), ()):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                found.append(Process(pid, born, words.decode(errors="replace")))
            left.append(pid)
    return found


@dataclass
class Ledger:
    """When each run was written to last, from the moment that it is complete."""

    store: Path
    complete: dict[str, int] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)

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


@dataclass
class Chaos:
    """One driver, and another one after it was killed, until the command comes to its end."""

    command: list[str]
    environment: dict[str, str]
    ledger: Ledger
    runs: int
    every: float
    cluster: set[int]
    """The number of the process that the machines of a Ray descend from, if there are any."""
    drivers: int = 0
    workers_killed: int = 0
    machines_removed: int = 0
    seen: set[Process] = field(default_factory=set)

    def drive(self) -> subprocess.Popen[bytes]:
        self.drivers += 1
        return subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, env=os.environ | self.environment
        )

    def run(self) -> int:
        """The exit code of the command that nobody killed."""
        driver, due = self.drive(), time.monotonic() + self.every
        while driver.poll() is None:
            time.sleep(0.25)
            self.ledger.look()
            there = descendants({driver.pid} | self.cluster)
            self.seen.update(there)
            done = len(self.ledger.complete) / self.runs
            if self.drivers == 1 and done >= DRIVER:
                driver.kill()
                driver.wait()
                driver = self.drive()
            elif self.cluster and [*REMOVALS, 2.0][self.machines_removed] <= done:
                self.machines_removed += killed(each for each in there if each.is_machine)
            elif time.monotonic() >= due:
                self.workers_killed += killed(each for each in there if each.works)
                due = time.monotonic() + self.every
        self.ledger.look()
        return driver.returncode

    def left(self) -> list[str]:
        """Processes that are still there when they should be gone."""
        until = time.monotonic() + PATIENCE
        while (found := [each for each in self.seen if alive(each)]) and time.monotonic() < until:
            time.sleep(0.2)
        return [each.words for each in found]


def killed(processes: Iterator[Process]) -> int:
    """Kill one of them, if there is any; how many were killed."""
    found = [*processes]
    if found:
        with suppress(ProcessLookupError):
            os.kill(random.choice(found).pid, signal.SIGKILL)
            return 1
    return 0


def alive(process: Process) -> bool:
    with suppress(OSError):
        state, *fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return fields[18] == process.born and state != "Z"
    return False


@contextmanager
def two_machines(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The Ray of the tests, in this folder; a machine that died is replaced."""
    folder.mkdir()
    with (folder / "users").open("w") as users, (folder / "log").open("w") as log:
        fcntl.flock(users, fcntl.LOCK_SH)
        command = [sys.executable, str(MINI_CLUSTER), str(folder)]
        started = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + PATIENCE
        while not (folder / "address").exists():
            if started.poll() is not None or time.monotonic() > until:
                raise SystemExit((folder / "log").read_text())
            time.sleep(0.1)
        yield started
    started.wait(PATIENCE)


def disturbed(chosen: argparse.Namespace, root: Path) -> dict[str, object]:
    """What chaos did, and what was left by it; the runs are in the folder `runs`."""
    (root / "tmp").mkdir()
    (root / "recipe.json").write_text(recipe(chosen.steps).to_file())
    command = [
        sys.executable, "-m", "hopscope", "train", str(root / "recipe.json"),
        "--seeds", f"0..{chosen.runs - 1}", "--pack", str(chosen.pack), "--device", "cpu",
        "--threads", "1", "--store", str(root / "runs"), "--workers",
    ]  # fmt: skip
    environment = {"TMPDIR": str(root / "tmp")}
    ledger = Ledger(root / "runs")
    if chosen.ray:
        with two_machines(root / "ray") as cluster:
            address = (root / "ray" / "address").read_text()
            command += ["ray", "--address", address]
            environment |= {"RAY_AUTH_MODE": "token"}
            environment |= {"RAY_AUTH_TOKEN_PATH": str(root / "ray" / "token")}
            chaos = Chaos(command, environment, ledger, chosen.runs, chosen.every, {cluster.pid})
            code = chaos.run()
    else:
        command.append("2")
        chaos = Chaos(command, environment, ledger, chosen.runs, chosen.every, set())
        code = chaos.run()
    return {
        "exit_code": code, "drivers": chaos.drivers, "workers_killed": chaos.workers_killed,
        "machines_removed": chaos.machines_removed, "complete": len(ledger.complete),
        "trained_again": sorted(ledger.again), "processes_left": chaos.left(),
        "temporary_files_left": sorted(
            path.name for path in (root / "tmp").iterdir() if not path.name.startswith(CACHE)
        ),
    }  # fmt: skip


def same(ours: Store, its: Store) -> int:
    """How many runs hold the same bytes: all but the manifest, which says how long they took."""
    equal = 0
    for name in its.names():
        one, other = ours.find(name), its.find(name)
        equal += [*map(one.read, one.files(""))] == [*map(other.read, other.files(""))]
    return equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--pack", type=int, default=1)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    random.seed(chosen.seed)
    # In /tmp itself: Ray's sockets have short names.
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as folder:
        root, begun = Path(folder), time.monotonic()
        found = disturbed(chosen, root)
        seconds = round(time.monotonic() - begun, 1)
        store, serial = Store(root / "runs"), Store(root / "serial")
        recipes = [member(recipe(chosen.steps), seed) for seed in range(chosen.runs)]
        carry_out(recipes, serial, device="cpu", workers=Here(chosen.pack, threads=1))
        row = {
            "benchmark": "chaos", **vars(chosen), "seconds": seconds, **found,
            "in_store": len(store.names()), "same_as_serial": same(store, serial),
        }  # fmt: skip
    print(json.dumps(row))


if __name__ == "__main__":
    main()
