"""Run a recipe of any kind: create, lock and check the run, compute, commit and complete it.

The state after a step depends only on the recipe and the step, so a run that was stopped or killed
continues from its last commit and ends with the same bytes.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hopscope import display
from hopscope.configs import Recipe
from hopscope.errors import Interrupted, RunDamaged, RunWarning, TrainingError
from hopscope.machine import check_threads, out_of_memory
from hopscope.runs.stepper import MakeStepper, Stepper, Watcher
from hopscope.runs.stop import Stop, exit_code
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, outdated
from hopscope.store.manifest import PACKED, is_derived


def prepared(  # noqa: PLR0913  (only sweeps pass `mark`)
    recipe: Recipe,
    prepare: Callable[[], MakeStepper],
    store: Store | Path | str | None = None,
    watcher: Watcher | None = None,
    stop: Stop | None = None,
    threads: int | None = None,
    *,
    mark: bytes | None = None,
) -> RunFolder:
    """Complete the run of a recipe and return it.

    `prepare` is called before the run is created, so that a recipe that this machine cannot compute
    leaves no run; it is not called if the run is complete. `watcher` receives the losses (default:
    in a notebook, a progress view). `threads` is the number of CPU threads (default: as many as the
    run began with, or torch's default); results are bit-identical for the same number of threads.
    `mark` marks a fleet that a sweep will split and remove; without it, such a mark is removed.
    """
    from hopscope.runs.computing import (  # torch
        note_computing,
        threads_of,
        using_threads,
        usual_modes,
    )

    check_threads(threads)
    stop, store = stop or Stop(), store if isinstance(store, Store) else Store(store)
    make_stepper = None if store.has_complete(recipe) else prepare()
    folder = store.create(recipe, {} if mark is None else {PACKED: mark})
    if folder.manifest.complete and not folder.leftovers() and (mark or not folder.packed):
        return folder
    with folder.locked(), stop.listening():  # `locked` also removes leftovers
        if mark is None and folder.packed:
            folder.commit({}, drop=(PACKED,))
        if not folder.manifest.complete:
            count = threads_of(folder, threads)
            with using_threads(count), usual_modes(), _out_of_memory(folder):
                lines = _check_files(folder)
                stepper = (make_stepper or prepare())(folder)
                lines.append(note_computing(folder, stepper.device))
                for line in filter(None, lines):
                    warnings.warn(line, RunWarning, stacklevel=3)
                _run(folder, stepper, stop, watcher or display.watcher())
    return folder


@contextmanager
def _out_of_memory(folder: RunFolder) -> Iterator[None]:
    """Raise TrainingError if memory runs out, so that a sweep continues with its other runs."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        said = out_of_memory(error)
        if not said:
            raise
        place = f"{folder.recipe.unit} {folder.manifest.step:,}"
        raise TrainingError(
            f"{folder.name} ran out of memory at {place} or after it ({said}): free some, and the "
            "same command continues; or take a smaller batch or model, or --pack 1"
        ) from error


def _check_files(folder: RunFolder) -> list[str]:
    """Raise RunDamaged if a needed file is damaged; return a warning for each other damaged file.

    Earlier checkpoints and derived files are not needed to continue.
    """
    earlier = {checkpoint_name(step) for step in checkpoint_steps(folder)[:-1]}
    damage = folder.damage()
    for name, line in damage.items():
        if name not in earlier and not is_derived(name):
            raise RunDamaged(line)
    return list(damage.values())


def _run(folder: RunFolder, stepper: Stepper, stop: Stop, watcher: Watcher | None) -> None:
    """Compute until the run is complete, or raise `Interrupted` after a commit."""
    new, steps = not folder.begun, folder.recipe.steps
    begun = time.monotonic() - folder.manifest.seconds
    if watcher is not None:
        watcher.start(folder, stepper.step)
    try:
        if new and stepper.step in stepper.planned:
            _commit(folder, stepper, time.monotonic() - begun)
        while stepper.step < steps:
            losses = stepper.advance()
            if watcher is not None and losses is not None:
                watcher.advance(stepper.step, losses)
            reason = stop.reason  # read once: it may change between lines
            if stepper.step in stepper.planned or reason:
                _commit(folder, stepper, time.monotonic() - begun)
            if reason and stepper.step < steps:
                raise Interrupted(
                    f"stopped by {reason} at {folder.recipe.unit} {stepper.step:,}, where it wrote "
                    f"a checkpoint: "
                    f"`{folder.command('resume')}`",
                    reason,
                    exit_code(reason),
                )
        files, parts = stepper.merged()
        folder.commit(files, drop=parts, complete=True)
    finally:
        if watcher is not None:
            watcher.stop()


def _commit(folder: RunFolder, stepper: Stepper, seconds: float) -> None:
    folder.commit(
        stepper.files(),
        drop=outdated(folder, stepper.planned),
        step=stepper.step,
        precision=stepper.precision,
        seconds=round(seconds, 3),
    )
