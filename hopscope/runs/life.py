"""The life of a run, of whatever kind: made, locked, looked over, carried on, committed, completed.

The state after a step depends on the recipe and the step alone, so a run that was stopped or
killed goes on from its last commit and ends with the same bytes.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hopscope.configs import Recipe
from hopscope.errors import Interrupted, RunDamaged, RunWarning, TrainingError
from hopscope.machine import check_threads
from hopscope.runs.stop import Stop, exit_code
from hopscope.runs.watcher import NobodyWatches, Watcher
from hopscope.runs.work import Begin, Work
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, outdated
from hopscope.store.manifest import is_derived


def complete(
    recipe: Recipe,
    begin: Begin,
    store: Store | Path | str | None = None,
    watcher: Watcher | None = None,
    stop: Stop | None = None,
    threads: int | None = None,
) -> RunFolder:
    """The complete run of a recipe: the one there is, or what the work makes of what there is.

    It computes with so many threads of the processor (None: as many as the run began with, or as
    torch would); the same number gives the same bits.
    """
    store = store if isinstance(store, Store) else Store(store)
    stop = stop or Stop()
    check_threads(threads)  # before there is a run
    from hopscope.runs.computing import note_computing, threads_of, using_threads  # torch

    folder = store.create(recipe)
    if not folder.manifest.complete or folder.leftovers():
        with folder.locked(), stop.listening():
            if not folder.manifest.complete:
                with using_threads(threads_of(folder, threads)), _memory_told(folder):
                    _warn(_look_over(folder))
                    work = begin(folder)
                    _warn([note_computing(folder, work.device)])
                    _carry_on(folder, work, stop, watcher or NobodyWatches())
    return folder


@contextmanager
def _memory_told(folder: RunFolder) -> Iterator[None]:
    """A run for which there is no memory is no reason to end a sweep."""
    import torch

    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        said = str(error).splitlines()[:1] or ["MemoryError"]
        raise TrainingError(
            f"{folder.name} ran out of memory at step {folder.manifest.step} or after it "
            f"({said[0][:120]}): free some, and the same command goes on; or take a smaller batch "
            "or model, or --pack 1"
        ) from error


def _look_over(folder: RunFolder) -> list[str]:
    """What is damaged of a run that can go on all the same.

    Earlier checkpoints are not needed to go on, and neither is what was made of the run; without
    any other file it could not be completed, which is better heard now than at its end.
    """
    earlier = {checkpoint_name(step) for step in checkpoint_steps(folder)[:-1]}
    lines = []
    for name, line in folder.damage().items():
        if name not in earlier and not is_derived(name):
            raise RunDamaged(line)
        lines.append(line)
    return lines


def _warn(lines: Iterable[str]) -> None:
    """Say what should be known of a run before it goes on."""
    for line in filter(None, lines):
        warnings.warn(line, RunWarning, stacklevel=4)


def _carry_on(folder: RunFolder, work: Work, stop: Stop, watcher: Watcher) -> None:
    """From where the work stands to its end, or to where it is stopped."""
    steps, lap = folder.recipe.steps, Lap()
    new = not folder.begun
    watcher.start(folder, work.step)
    try:
        if new and work.step in work.planned:
            _commit(folder, work, lap)
        while work.step < steps:
            losses = work.advance()
            if losses is not None:
                watcher.advance(work.step, losses)
            reason = stop.reason  # asked once: it may arrive between lines
            if work.step in work.planned or reason:
                _commit(folder, work, lap)
            if reason and work.step < steps:
                raise _interrupted(folder, work.step, reason)
        files, pieces = work.merged()
        folder.commit(files, drop=pieces, complete=True)
    finally:
        watcher.stop()


def _commit(folder: RunFolder, work: Work, lap: "Lap") -> None:
    files = work.files()
    folder.commit(
        files,
        drop=outdated(folder, work.planned),
        step=work.step,
        precision=work.precision,
        seconds=round(folder.manifest.seconds + lap.seconds(), 3),
    )


def _interrupted(folder: RunFolder, step: int, reason: str) -> Interrupted:
    """What a run raises that was asked to stop."""
    error = Interrupted(
        f"stopped by {reason} at step {step}, where it wrote a checkpoint: "
        f"`hopscope resume {folder.name}`"
    )
    error.reason = reason
    error.exit_code = exit_code(reason)
    return error


class Lap:
    """A clock that counts from one look to the next."""

    def __init__(self) -> None:
        self._before = time.monotonic()

    def seconds(self) -> float:
        """The seconds since the last call, or since the clock was made."""
        now = time.monotonic()
        self._before, before = now, self._before
        return now - before
