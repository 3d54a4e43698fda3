"""Carry out recipes of any kind: what is complete is taken as it is, what was begun goes on.

Nothing is kept about several runs together. Runs are named by what they are, so the same call after
a stop, a kill or a reboot does the rest, with the same workers or with others.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.configs import Recipe
from hopscope.errors import (
    ConfigError,
    HopscopeError,
    Interrupted,
    RunBusy,
    RunWarning,
    StoreError,
)
from hopscope.store import RunFolder, Store
from hopscope.store.lock import SECONDS
from hopscope.workers.here import Here
from hopscope.workers.job import Job, Report
from hopscope.workers.packing import is_held, packed
from hopscope.workers.pool import Pool
from hopscope.workers.progress import Progress

if TYPE_CHECKING:
    from hopscope.runs import Stop

MOMENT = 0.25
"""Seconds after which a run that others hold is looked at again."""
WAIT = SECONDS
"""Seconds to wait for a run that others hold: the lock of a dead process is free by then."""


@dataclass(frozen=True)
class Outcome:
    """How far a sweep over several recipes came."""

    folders: tuple[RunFolder, ...]
    """Complete runs, in the order of the recipes."""
    wanted: int
    troubles: tuple[HopscopeError, ...] = ()
    """Why runs are missing, beside the time."""

    @property
    def complete(self) -> bool:
        """True if every recipe has a complete run."""
        return len(self.folders) == self.wanted


def carry_out(
    recipes: Sequence[Recipe],
    store: "Store | Path | str",
    stop: "Stop | None" = None,
    device: str = "auto",
    *,
    workers: Pool | None = None,
    look: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Complete every recipe's run, until the stop's time is over.

    A run that fails is left out, and so is one that another process goes on to train: the others do
    not wait for it. A signal ends all of it. Whoever is to `look` is told how far all of it is
    every now and then.
    """
    from hopscope.runs import TIME, Stop  # torch

    _check_list(recipes)
    check_different(recipes)
    store = store if isinstance(store, Store) else Store(store)
    sweep = _Sweep(store, workers or Here(), stop or Stop(), device, look)
    missing = [recipe for recipe in recipes if _complete(store, recipe) is None]
    sweep.round(recipes, missing)
    while again := sweep.let_go(recipes):
        sweep.round(again, again)
    if sweep.stop.reason not in (None, TIME):  # a person asked, not the clock
        raise _interrupted(sweep.stop.reason, sweep.reports, len(missing))
    folders = [folder for recipe in recipes if (folder := _complete(store, recipe))]
    found = [each for recipe in recipes if (each := sweep.reports.get(recipe.run_name()))]
    troubles = [each.trouble.error() for each in found if each.trouble and each.failed]
    return Outcome(tuple(folders), len(recipes), tuple(troubles))


@dataclass
class _Sweep:
    """What is known of several runs while they are carried out."""

    store: Store
    pool: Pool
    stop: "Stop"
    device: str
    look: Callable[[Progress], None] | None
    progress: Progress = field(default_factory=lambda: Progress(()))

    @property
    def reports(self) -> dict[str, Report]:
        """What became of each run last, by its name."""
        return self.progress.reports

    def round(self, recipes: Sequence[Recipe], missing: Sequence[Recipe]) -> None:
        """Hand out those of the recipes that are missing, and hear what becomes of them."""
        packs = packed(recipes, missing, self.store, self.pool.pack)
        jobs = [Job.of(each, self.store, self.device, self.pool.share) for each in packs]
        if not self.progress.jobs:
            self.progress = Progress(jobs)
        with closing(self.pool.reports(jobs, self.stop)) as coming:
            for report in _until_interrupted(coming):
                if report is not None:
                    self.reports[report.name] = report
                    for line in report.notes:
                        warnings.warn(line, RunWarning, stacklevel=3)
                if self.look is not None:
                    self.look(self.progress)

    def let_go(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """Those whose runs others held, or stopped, and that nobody holds any more; waits for them
        until the lock of a dead process would be free.
        """
        left = [each for each in recipes if _put_off(self.reports.get(each.run_name()))]
        until = time.monotonic() + WAIT
        while held := [each for each in left if is_held(each, self.store)]:
            if time.monotonic() >= until or self.stop.reason:
                break
            time.sleep(MOMENT)
        free = [each for each in left if each not in held and not self.stop.reason]
        for each in free:
            del self.reports[each.run_name()]
        return free


def _put_off(report: Report | None) -> bool:
    """Was a run left as another process held it, or as somebody stopped its worker?"""
    busy = RunBusy.__name__
    return report is not None and (
        report.state == "stopped" or (report.trouble is not None and report.trouble.kind == busy)
    )


def _until_interrupted(coming: Iterator[Report | None]) -> Iterator[Report | None]:
    """The reports there are; that a pool was interrupted, the stop tells."""
    with suppress(Interrupted):
        yield from coming


def check_different(recipes: Sequence[Recipe]) -> None:
    """Refuse two recipes that are one run: somebody meant something else."""
    first: dict[str, int] = {}
    for number, recipe in enumerate(recipes, 1):
        name = recipe.run_name()
        if name in first:
            raise ConfigError(
                f"recipes {first[name]} and {number} are the same run, {name}: leave one of them "
                "out, or give it other seeds"
            )
        first[name] = number


def _check_list(recipes: object) -> None:
    if not isinstance(recipes, Sequence):
        raise ConfigError(f"recipes is one {type(recipes).__name__}; expected a list: [recipe]")


def _complete(store: Store, recipe: Recipe) -> RunFolder | None:
    """The complete run of a recipe, if there is one. What is wrong with another, its job tells."""
    try:
        found = store.of(recipe)
    except StoreError:
        return None
    return found if found is not None and found.manifest.complete else None


def _interrupted(reason: str, reports: Mapping[str, Report], wanted: int) -> Interrupted:
    """What a sweep raises that was asked to stop."""
    from hopscope.runs.stop import exit_code  # torch

    stopped = [
        each.trouble.text.replace(each.trouble.reason, reason, 1)  # a worker knows of its own alone
        for each in reports.values()
        if each.trouble and not each.failed
    ]
    complete = sum(each.state == "complete" for each in reports.values())
    error = Interrupted(
        stopped[0]
        if len(stopped) == 1
        else f"stopped by {reason}: {complete} of {wanted} runs are complete, {len(stopped)} wrote "
        "a checkpoint; the same command goes on"
    )
    error.reason, error.exit_code = reason, exit_code(reason)
    return error
