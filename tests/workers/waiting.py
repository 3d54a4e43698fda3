"""What tests of many runs share: recipes, jobs that are stopped, and to wait for something."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from stopping import changed, content

from hopscope.configs import Experiment, Model
from hopscope.runs import Stop
from hopscope.store import Store
from hopscope.workers import Job, Report
from hopscope.workers.job import do

PATIENCE = 240.0
"""Seconds for what takes a few, on a machine that does much else."""


def until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def stat(pid: int) -> list[str]:
    """State, parent and more of a process; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"]


def alive(pid: int) -> bool:
    return stat(pid)[0] not in "ZX"


@contextmanager
def ctrl_c(*moments: Callable[[], object]) -> Iterator[None]:
    """Press Ctrl-C when the first of these is true, then when the next is. If one never is, or if
    the block goes on, press until it ends, and fail. Goes inside what expects KeyboardInterrupt.
    """
    ended = threading.Event()

    def press() -> None:
        try:
            for moment in moments:
                until(lambda now=moment: ended.is_set() or now())
                if not ended.is_set():
                    os.kill(os.getpid(), signal.SIGINT)
            assert ended.wait(PATIENCE), "it goes on after Ctrl-C"
        finally:
            while not ended.wait(1):
                os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as threads:
        try:
            pressed = threads.submit(press)
            yield
        finally:
            ended.set()
            pressed.result()


def smallest(recipe: Experiment, **training: object) -> Experiment:
    """The same with the smallest of models, for many steps."""
    return changed(recipe.replace(model=Model(layers=1, heads=1, d_model=8)), **training)


def stopped(job: Job) -> list[Report]:
    """The reports of a job that somebody stops after one step."""
    stop = Stop()
    stop.ask("enough")
    return do(job, stop=stop)


def files(store: Store, recipe: Experiment) -> dict[str, bytes]:
    folder = store.find(recipe.run_name())
    assert folder.verify() == []
    return content(folder)
