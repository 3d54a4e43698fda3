"""Times of two kinds of work while other programs are busy, for several ways in which threads wait.

Run from a clone: `python benchmarks/busy.py [--rounds N]`. It takes ten minutes, most of them for
the row with OpenMP's default. Each row has the time for the explorer's page of `gallery/demo`
(thousands of small operations) in one process, with one thread per core, and for 300 steps of the
demo's training in another process: alone, and while other programs occupy all cores but one.
"""

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rows import print_row

from hopscope.machine import cores, processor

WAYS = {
    "as OpenMP does": ({"GOMP_SPINCOUNT": "300000"}, ""),
    "as hopscope does": ({}, ""),
    "as hopscope does, torch first": ({}, "import torch; "),
    "asleep at once": ({"OMP_WAIT_POLICY": "passive"}, ""),
}
"""For each way, the environment variables, and the code that runs before hopscope is imported. By
default, a thread of GNU OpenMP spins 300,000 turns before it sleeps.
"""
PAGE = "from hopscope.web.frame import Frame; Frame('gallery/demo')._repr_html_()"
COMMAND = "from hopscope.cli.main import main; main()"
SPIN = "while True: pass"


def main(rounds: int) -> None:
    """Time every way alone and beside busy programs; print a row for each."""
    found: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    for _ in range(rounds):
        for way, (environment, before) in WAYS.items():
            for busy in (0, cores() - 1):
                with _company(busy):
                    for work, seconds in _times(environment, before).items():
                        found[way].setdefault(f"{work}, {busy} busy", []).append(seconds)
    for way, times in found.items():
        least = {name: round(min(all_), 2) for name, all_ in times.items()}
        print_row({"way": way, "processor": processor(), "cores": cores(), **least})


def _times(environment: Mapping[str, str], before: str) -> dict[str, float]:
    """Seconds of wall-clock time for each kind of work."""
    free = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    with tempfile.TemporaryDirectory() as store:
        train = ["train", "demo", "training.steps=300", "--store", store]
        works = {"page": ["-c", before + PAGE], "training": ["-c", before + COMMAND, *train]}
        return {name: _clock(words, {**free, **environment}) for name, words in works.items()}


def _clock(words: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], env=environment, capture_output=True, check=True)
    return time.perf_counter() - start


@contextmanager
def _company(busy: int) -> Iterator[None]:
    """A context in which this number of programs run that never sleep."""
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
    parser = ArgumentParser(description="Time two kinds of work beside other busy programs.")
    text = "Number of measurements of each way, in turns; the least one counts."
    parser.add_argument("--rounds", type=int, default=1, help=text)
    main(parser.parse_args().rounds)
