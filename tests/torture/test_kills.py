"""Trainings and sweeps that are killed at random moments end as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from torture.harness import LIMIT, committed, done, hopscope_, started, train_words, transformer

from hopscope.store.manifest import MANIFEST

pytestmark = pytest.mark.slow
KILLS = 12
RUNS = 6


def step_of(store: Path) -> int:
    return sum(run.manifest.step for run in _runs(store))


def _runs(store: Path) -> list:  # type: ignore[type-arg]
    from hopscope.store import Store

    return Store(store).readable()[0] if store.exists() else []


def test_a_training_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """Anywhere: while it starts, between checkpoints, and in a commit."""
    chance, recipe = Random(45), transformer(steps=200, every=10)
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
        words = train_words(tmp_path / name, recipe)
    assert done(hopscope_, tmp_path / "whole", *words).code == 0
    store, steps = tmp_path / "cut" / "runs", [0]
    for number in range(KILLS):
        process = started(tmp_path / f"said-{number}", hopscope_, tmp_path / "cut", *words)
        while number % 3 and process.is_alive() and step_of(store) <= steps[-1]:
            time.sleep(0.005)
        process.join(chance.uniform(0, 0.1))
        process.kill()
        process.join()
        committed(store)
        steps.append(step_of(store))
    assert steps == sorted(steps)
    assert len(set(steps)) > KILLS // 2
    end = done(hopscope_, tmp_path / "cut", *words)
    assert (end.code, end.rude) == (0, "")
    assert committed(tmp_path / "cut" / "runs") == committed(tmp_path / "whole" / "runs")


def children(pid: int) -> Iterator[int]:
    """The processes that a process has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parent) == pid and state not in "ZX":
            yield int(stat.parent.name)


def test_a_sweep_whose_workers_and_driver_are_killed_ends_with_the_same_bytes(
    tmp_path: Path,
) -> None:
    """No run is trained again once it is complete, and no process and no file is left."""
    chance, recipe = Random(45), transformer(steps=120, every=20)
    (tmp_path / "tmp").mkdir()
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
        words = (*train_words(tmp_path / name, recipe), "--seeds", f"0..{RUNS - 1}", "--pack", "1")
    assert done(hopscope_, tmp_path / "whole", *words, "--workers", "1").code == 0
    whole = committed(tmp_path / "whole" / "runs")
    assert len(whole) == RUNS
    command = [sys.executable, "-m", "hopscope", *words, "--workers", "2", "--store", "runs"]
    settings = {
        "cwd": tmp_path / "cut", "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE,
        "text": True, "env": os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    }  # fmt: skip
    store, end, seen = tmp_path / "cut" / "runs", time.monotonic() + 2 * LIMIT, set()
    complete: dict[str, int] = {}
    killed, at, drivers = 0, 0, 1
    driver = subprocess.Popen(command, **settings)  # type: ignore[call-overload]
    while driver.poll() is None:
        assert time.monotonic() < end, "it hangs"
        time.sleep(0.05)
        workers = [*children(driver.pid)]
        seen.update(workers)
        for run in _runs(store):
            if run.manifest.complete:
                written = (run.path / MANIFEST).stat().st_mtime_ns
                assert complete.setdefault(run.name, written) == written
        further = step_of(store) >= at + 120  # somebody has worked since the last kill
        if further and workers and killed < 3:
            os.kill(chance.choice(workers), signal.SIGKILL)
            killed, at = killed + 1, step_of(store)
        if drivers == 1 and killed == 2:
            driver.kill()
            driver.communicate()
            driver = subprocess.Popen(command, **settings)  # type: ignore[call-overload]
            drivers = 2
    assert (driver.returncode, drivers, driver.communicate()[1]) == (0, 2, "")
    assert killed == 3
    assert committed(store) == whole
    assert not [pid for pid in seen if Path(f"/proc/{pid}").exists()]
    left = [path.name for path in (tmp_path / "tmp").iterdir()]
    assert [name for name in left if not name.startswith("torchinductor_")] == []
