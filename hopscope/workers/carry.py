"""Carry out recipes of any kind: what is complete is taken as it is, what was begun goes on.

Nothing is kept about several runs together. Runs are named by what they are, so the same call after
a stop, a kill or a reboot does the rest, with the same workers or with others.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopscope.configs import Experiment, Recipe
from hopscope.errors import ConfigError, HopscopeError, Interrupted, RunWarning, StoreError
from hopscope.machine import cores
from hopscope.store import RunFolder, Store
from hopscope.workers.here import Here
from hopscope.workers.job import Job, Report
from hopscope.workers.packing import Size, packed
from hopscope.workers.pool import Pool
from hopscope.workers.progress import Progress
from hopscope.workers.sizing import best_size, measured

if TYPE_CHECKING:
    from hopscope.runs import Stop, Watcher


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


def carry_out(  # noqa: PLR0913  (the one call there is)
    recipes: Sequence[Recipe],
    store: Store,
    watcher: "Watcher | None" = None,
    stop: "Stop | None" = None,
    device: str = "auto",
    threads: int | None = None,
    *,
    workers: Pool | None = None,
    look: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Complete every recipe's run, until the stop's time is over.

    A run that another process trains, or that fails, is left out: the others need not wait for it.
    A signal ends all of it. Whoever is to `look` is told how far all of it is every now and then.
    """
    from hopscope.runs import TIME, Stop  # torch

    check_different(recipes)
    stop, pool = stop or Stop(), workers or Here()
    missing = [recipe for recipe in recipes if _complete(store, recipe) is None]
    size = sizes(pool, device, threads or max(1, cores() // pool.slots))
    packs = packed(recipes, missing, store, size)
    jobs = [Job.of(each, store, device, threads) for each in packs]
    progress = Progress(jobs)
    reports = progress.reports
    with closing(pool.reports(jobs, stop, watcher)) as coming:
        for report in _until_interrupted(coming):
            if report is not None:
                reports[report.name] = report
                for line in report.notes:
                    warnings.warn(line, RunWarning, stacklevel=2)
            if look is not None:
                look(progress)
    if stop.reason not in (None, TIME):  # a person asked, not the clock
        raise _interrupted(stop.reason, reports, len(missing))
    folders = [folder for recipe in recipes if (folder := _complete(store, recipe))]
    failed = [each for recipe in recipes if (each := reports.get(recipe.run_name()))]
    troubles = [each.trouble.error() for each in failed if each.trouble and each.state == "failed"]
    return Outcome(tuple(folders), len(recipes), tuple(troubles))


def _until_interrupted(coming: Iterator[Report | None]) -> Iterator[Report | None]:
    """The reports there are; that a pool was interrupted, the stop tells."""
    with suppress(Interrupted):
        yield from coming


def sizes(pool: Pool, device: str, threads: int | None) -> Size:
    """How large fleets may be for a pool: as it says, or as was measured."""

    def size(recipe: Experiment, count: int) -> int:
        if pack != "auto":  # the same fleets, and so the same bits, with any number of workers
            return min(pack, count)
        most = -(-count // pool.slots)
        if most == 1:
            return 1
        found = measured(recipe, most, device, threads)
        return best_size(found, count, pool.slots)

    pack = pool.pack
    return size


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


def _complete(store: Store, recipe: Recipe) -> RunFolder | None:
    """The complete run of a recipe, if there is one. What is wrong with another, its job tells."""
    try:
        return RunFolder(store.root / recipe.run_name()) if store.has_complete(recipe) else None
    except StoreError:
        return None


def _interrupted(reason: str, reports: Mapping[str, Report], wanted: int) -> Interrupted:
    """What a sweep raises that was asked to stop."""
    from hopscope.runs.stop import exit_code  # torch

    stopped = [each.trouble.text for each in reports.values() if each.trouble and not each.failed]
    complete = sum(each.state == "complete" for each in reports.values())
    error = Interrupted(
        stopped[0]
        if len(stopped) == 1
        else f"stopped by {reason}: {complete} of {wanted} runs are complete, {len(stopped)} wrote "
        "a checkpoint; the same command goes on"
    )
    error.reason, error.exit_code = reason, exit_code(reason)
    return error
