"""What it costs that another program has one of the cores: one JSON row for each way of waiting.

Run from a clone: `python benchmarks/busy.py [--rounds N]`; ten minutes, nearly all of them in the
row that shows what OpenMP does by default. Each row computes the explorer's page of `gallery/demo`
(thousands of small operations) in a process of its own, with as many threads as there are cores,
and takes 300 steps of the demo's training in another: alone, and beside programs that keep all
cores but one busy.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import tyro

from hopscope.machine import cores, processor

WAYS = {
    "as OpenMP does": ({"GOMP_SPINCOUNT": "300000"}, ""),
    "as hopscope does": ({}, ""),
    "as hopscope does, torch first": ({}, "import torch; "),
    "asleep at once": ({"OMP_WAIT_POLICY": "passive"}, ""),
}
"""The environment, and what runs before hopscope is imported. GNU's OpenMP spins 300,000 turns if
nobody says otherwise.
"""
PAGE = "from hopscope.web.frame import Frame; Frame('gallery/demo')._repr_html_()"
COMMAND = "from hopscope.cli.main import main; main()"
SPIN = "while True: pass"


@dataclass(frozen=True)
class Options:
    """What to time."""

    rounds: int = 1
    """Each way so often, in turn; the least counts."""


def main(options: Options) -> None:
    """Time every way alone and beside busy programs; print a row for each."""
    found: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    for _ in range(options.rounds):
        for way, (environment, before) in WAYS.items():
            for busy in (0, cores() - 1):
                with _company(busy):
                    for work, seconds in _times(environment, before).items():
                        found[way].setdefault(f"{work}, {busy} busy", []).append(seconds)
    for way, times in found.items():
        least = {name: round(min(all_), 2) for name, all_ in times.items()}
        print(json.dumps({"way": way, "processor": processor(), "cores": cores(), **least}))


def _times(environment: Mapping[str, str], before: str) -> dict[str, float]:
    """Seconds of the clock for each kind of work."""
    free = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    with tempfile.TemporaryDirectory() as store:
        train = ["train", "demo", "--training.steps", "300", "--store", store]
        works = {"page": ["-c", before + PAGE], "training": ["-c", before + COMMAND, *train]}
        return {name: _clock(words, {**free, **environment}) for name, words in works.items()}


def _clock(words: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], env=environment, capture_output=True, check=True)
    return time.perf_counter() - start


@contextmanager
def _company(busy: int) -> Iterator[None]:
    """So many other programs that never rest, each in a session of its own."""
    programs = [
        subprocess.Popen([sys.executable, "-c", SPIN], start_new_session=True) for _ in range(busy)
    ]
    try:
        yield
    finally:
        for each in programs:
            each.kill()
            each.wait()


if __name__ == "__main__":
    main(tyro.cli(Options))
