"""Carry out recipes of any kind: a complete run is taken as it is, one that was begun goes on.

Nothing is kept about several runs together. A run is named by its recipe, so the same call after a
stop, a kill or a reboot does the rest, with the same workers or with others.
"""

import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
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
    TrainingError,
)
from hopscope.store import RunFolder, Store
from hopscope.store.lock import SECONDS
from hopscope.workers.fleets import is_held, jobs_of
from hopscope.workers.job import Job, Report, Trouble, is_complete
from hopscope.workers.pools import Here, Pool, WorkerLost, Workers
from hopscope.workers.progress import Progress, steps_of

if TYPE_CHECKING:
    from hopscope.runs import Stop

MOMENT = 0.25
"""Seconds after which progress is shown, and a run that others hold is looked at again."""
WAIT = SECONDS
"""Seconds to wait for a run that others hold: the lock of a dead process is free by then."""
ATTEMPTS = 8
"""Workers that may die in a row during a job without bringing it further. Workers die for many
reasons (memory that others took, a machine that is cleared): if one of two is killed every five
seconds, a run of three seconds loses eight in a row once in 15,000 times."""


@dataclass(frozen=True)
class Outcome:
    """How far several runs came."""

    folders: tuple[RunFolder, ...]
    """Complete runs, in the order of the recipes."""
    wanted: int
    troubles: tuple[HopscopeError, ...] = ()
    """Why runs are missing, unless the time was over."""

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

    A run that fails, or that another process trains, does not stop the others. A signal ends all.
    `look` is shown the progress a few times a second.
    """
    from hopscope.runs import TIME, Stop  # torch

    if not isinstance(recipes, Sequence):
        raise ConfigError(f"recipes is one {type(recipes).__name__}; expected a list: [recipe]")
    check_different(recipes)
    store = store if isinstance(store, Store) else Store(store)
    sweep = _Sweep(store, workers or Here(), stop or Stop(), device, look)
    missing = [recipe for recipe in recipes if not is_complete(recipe, store)]
    with sweep.stop.listening():
        sweep.round(recipes, missing)
        while again := sweep.let_go(recipes):
            sweep.round(again, again)
        if sweep.stop.reason not in (None, TIME):  # somebody asked, not the clock
            raise _interrupted(sweep.stop.reason, sweep.reports, len(missing))
    folders = [
        RunFolder(store.root / each.run_name()) for each in recipes if is_complete(each, store)
    ]
    found = [each for recipe in recipes if (each := sweep.reports.get(recipe.run_name()))]
    troubles = [each.trouble.error() for each in found if each.trouble and each.state == "failed"]
    return Outcome(tuple(folders), len(recipes), tuple(troubles))


@dataclass
class _Task:
    """A job, and how many workers died since it last came further."""

    job: Job
    deaths: int = 0

    def __post_init__(self) -> None:
        self.steps = steps_of(self.job)

    def died(self) -> bool:
        """Count a death; True if the job is to be given up."""
        steps = steps_of(self.job)
        self.deaths = self.deaths + 1 if steps == self.steps else 1
        self.steps = steps
        return self.deaths >= ATTEMPTS


@dataclass
class _Sweep:
    """Several runs while they are carried out."""

    store: Store
    pool: Pool
    stop: "Stop"
    device: str
    look: Callable[[Progress], None] | None
    progress: Progress = field(default_factory=lambda: Progress(()))

    @property
    def reports(self) -> dict[str, Report]:
        """The last report on each run, by its name."""
        return self.progress.reports

    def round(self, recipes: Sequence[Recipe], missing: Sequence[Recipe]) -> None:
        """Hand out the missing recipes, and collect the reports."""
        found = jobs_of(recipes, missing, self.store, self.pool.pack)
        jobs = [Job.of(each, self.store, self.device, self.pool.share) for each in found]
        if not self.progress.jobs:
            self.progress = Progress(jobs)
        if jobs and not self.stop.reason:
            with self.pool.open(jobs, self.stop) as workers:
                self._hand_out(deque(map(_Task, jobs)), workers)

    def _hand_out(self, waiting: deque[_Task], workers: Workers) -> None:
        running: dict[Future[list[Report]], _Task] = {}
        failure: Exception | None = None
        asked = False
        while waiting or running:
            if (self.stop.reason or failure) and not asked:
                asked = True
                workers.ask_to_stop()
            if asked:
                waiting.clear()
            while waiting and len(running) < workers.most:
                task = waiting.popleft()
                running[workers.begin(task.job)] = task
            for future in wait(running, MOMENT, FIRST_COMPLETED).done:
                try:
                    self._take(future, running.pop(future), waiting, asked)
                except Exception as error:  # noqa: BLE001  (raised below, after the others stopped)
                    failure = failure or error
            if self.look is not None:
                self.look(self.progress)
        if failure:
            raise failure

    def _take(
        self, future: Future[list[Report]], task: _Task, waiting: deque[_Task], asked: bool
    ) -> None:
        """Take the reports on a job. If its worker died, the job goes to another one."""
        try:
            reports = future.result()
        except WorkerLost as error:
            if asked:
                return
            if not task.died():
                waiting.append(task)
                return
            reports = _given_up(task.job, error)
        for report in reports:
            self.reports[report.name] = report
            for line in report.notes:
                warnings.warn(line, RunWarning, stacklevel=5)

    def let_go(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """Runs that others held, or that were stopped, and that nobody holds any more. Waits until
        the lock of a dead process would be free.
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


def _given_up(job: Job, error: WorkerLost) -> list[Report]:
    names = [recipe.run_name() for recipe in job.read()]
    text = f"its worker died {ATTEMPTS} times in a row without a new checkpoint ({error})"
    return [Report.of(name, 0.0, Trouble.of(TrainingError(f"{name}: {text}"))) for name in names]


def _put_off(report: Report | None) -> bool:
    """Was a run left because another process held it, or because its worker was stopped?"""
    busy = RunBusy.__name__
    return report is not None and (
        report.state == "stopped" or (report.trouble is not None and report.trouble.kind == busy)
    )


def check_different(recipes: Sequence[Recipe]) -> None:
    """Refuse two recipes that are the same run."""
    first: dict[str, int] = {}
    for number, recipe in enumerate(recipes, 1):
        name = recipe.run_name()
        if name in first:
            raise ConfigError(
                f"recipes {first[name]} and {number} are the same run, {name}: leave one of them "
                "out, or give it other seeds"
            )
        first[name] = number


def _interrupted(reason: str, reports: Mapping[str, Report], wanted: int) -> Interrupted:
    """What is raised when a signal stopped it."""
    from hopscope.runs.stop import exit_code  # torch

    stopped = [
        each.trouble.text.replace(each.trouble.reason, reason, 1)  # a worker knows its own alone
        for each in reports.values()
        if each.trouble and each.state == "stopped"
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
