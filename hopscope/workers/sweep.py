"""Complete the runs of many recipes of any kind.

Nothing is stored about a sweep. The recipe determines the name of a run, so the same call after a
stop, a kill or a reboot completes the other runs, with the same or with other workers.
"""

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from hopscope.configs import Recipe
from hopscope.errors import (
    ConfigError,
    HopscopeError,
    Interrupted,
    RunMissing,
    RunWarning,
    TrainingError,
)
from hopscope.store import RunFolder, Store
from hopscope.store.lock import LEASE_SECONDS
from hopscope.workers.fleets import is_held, jobs_of
from hopscope.workers.job import Job, Report, complete_run, is_complete
from hopscope.workers.pools import Here, OpenPool, Pool, WorkerLost
from hopscope.workers.progress import SweepProgress, committed_steps

if TYPE_CHECKING:
    from hopscope.runs import Stop

MOMENT = 0.25
"""Seconds between two checks of the progress, or of a run that another process holds."""
WAIT = LEASE_SECONDS
"""Seconds to wait for a run that another process holds: after this a dead process's lock has
expired."""
ATTEMPTS = 8
"""A job fails after this many deaths of workers in a row without a new checkpoint. (If one of two
workers is killed every five seconds, a run of three seconds loses eight in a row once in 15,000
times.)"""


@dataclass(frozen=True)
class Outcome:
    """The result of a sweep."""

    folders: tuple[RunFolder, ...]
    """Complete runs, in the order of the recipes."""
    wanted: int
    troubles: tuple[HopscopeError, ...] = ()
    """The errors of runs that failed; runs stopped by the time limit have none."""

    @property
    def complete(self) -> bool:
        """Whether every recipe has a complete run."""
        return len(self.folders) == self.wanted


def carry_out(
    recipes: Sequence[Recipe],
    store: "Store | Path | str",
    stop: "Stop | None" = None,
    device: str = "auto",
    *,
    workers: Pool | None = None,
    look: Callable[[SweepProgress], None] | None = None,
) -> Outcome:
    """Complete the run of every recipe, within the time limit of `stop`.

    A run that fails, or that another process trains, does not stop the others. A signal stops all
    runs and raises Interrupted. `look` is called with the progress a few times a second.
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
        while again := sweep.released(recipes):
            sweep.round(again, again)
        if sweep.stop.reason not in (None, TIME):  # a signal
            raise _interrupted(sweep.stop.reason, sweep.reports, len(missing))
    runs = {recipe.run_name(): complete_run(recipe, store) for recipe in recipes}
    left = [name for name, run in runs.items() if run is None]
    complete = tuple(filter(None, runs.values()))
    return Outcome(complete, len(recipes), tuple(sweep.troubles(left)))


@dataclass
class _Task:
    """A job, and the number of workers that died since its last new checkpoint."""

    job: Job
    deaths: int = 0

    def __post_init__(self) -> None:
        self.steps = committed_steps(self.job)

    def died(self) -> bool:
        """Count a death of a worker; return True if the job has failed."""
        steps = committed_steps(self.job)
        self.deaths = self.deaths + 1 if steps == self.steps else 1
        self.steps = steps
        return self.deaths >= ATTEMPTS


@dataclass
class _Sweep:
    """A sweep in progress."""

    store: Store
    pool: Pool
    stop: "Stop"
    device: str
    look: Callable[[SweepProgress], None] | None
    progress: SweepProgress = field(default_factory=lambda: SweepProgress(()))

    @property
    def reports(self) -> dict[str, Report]:
        """The last report on each run, by the name of the run."""
        return self.progress.reports

    def round(self, recipes: Sequence[Recipe], missing: Sequence[Recipe]) -> None:
        """Distribute the missing recipes to workers, and collect the reports."""
        packs = jobs_of(recipes, missing, self.store, self.pool.pack)
        jobs = [Job.of(pack, self.store, self.device, self.pool.job_threads) for pack in packs]
        if not self.progress.jobs:
            self.progress = SweepProgress(jobs)
        if jobs and not self.stop.reason:
            with self.pool.open(jobs, self.stop) as workers:
                self._hand_out(deque(map(_Task, jobs)), workers)

    def _hand_out(self, waiting: deque[_Task], workers: OpenPool) -> None:
        running: dict[Future[list[Report]], _Task] = {}
        ended: SimpleQueue[Future[list[Report]]] = SimpleQueue()
        failure: Exception | None = None
        asked = False
        while waiting or running:
            if (self.stop.reason or failure) and not asked:
                asked = True
                workers.ask_to_stop()
            if asked:
                waiting.clear()
            while waiting and len(running) < workers.capacity:
                task = waiting.popleft()
                future = workers.begin(task.job)
                running[future] = task
                future.add_done_callback(ended.put)
            try:
                # Not `futures.wait`: a second Ctrl-C could leave its lock held forever.
                future = ended.get(timeout=MOMENT if running else 0.0)
                self._take(future, running.pop(future), waiting, asked)
            except Empty:
                pass
            except Exception as error:  # noqa: BLE001  (raised below, after the others stopped)
                failure = failure or error
            if self.look is not None:
                self.look(self.progress)
        if failure:
            raise failure

    def _take(
        self, future: Future[list[Report]], task: _Task, waiting: deque[_Task], asked: bool
    ) -> None:
        """Store the reports on a job; if its worker died, put the job back into `waiting`."""
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

    def released(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """Return the recipes whose runs were held by another process, or stopped, and are now free.

        Waits up to `WAIT` seconds, until the lock of a dead process has expired.
        """
        left = [each for each in recipes if _put_off(self.reports.get(each.run_name()))]
        jobs = jobs_of(left, left, self.store, self.pool.pack) if left else []
        until = time.monotonic() + WAIT
        while held := [job for job in jobs if is_held(job, self.store)]:
            if time.monotonic() >= until or self.stop.reason:
                break
            time.sleep(MOMENT)
        busy = {each.run_name() for job in held for each in job}
        free = [each for each in left if each.run_name() not in busy and not self.stop.reason]
        for each in free:
            del self.reports[each.run_name()]
        return free

    def troubles(self, left: Sequence[str]) -> Iterator[HopscopeError]:
        """Yield the errors of incomplete runs; none for runs stopped by the time limit."""
        for name in left:
            report = self.reports.get(name)
            if report and report.state in ("busy", "failed"):
                yield report.trouble()
            elif not self.stop.reason:
                yield RunMissing(
                    f"{name} was removed or taken over by another process: the same command "
                    "completes it"
                )


def _given_up(job: Job, error: WorkerLost) -> list[Report]:
    """Return the reports on a job whose workers died too often."""
    text = f"its worker died {ATTEMPTS} times in a row without a new checkpoint ({error})"
    return [Report.of(name, TrainingError(f"{name}: {text}")) for name in job.names]


def _put_off(report: Report | None) -> bool:
    """Return whether the run was held by another process, or its worker was stopped."""
    return report is not None and report.state in ("busy", "stopped")


def check_different(recipes: Sequence[Recipe]) -> None:
    """Raise ConfigError if two recipes are the same run."""
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
    """The error of a sweep that was stopped."""
    from hopscope.runs.stop import exit_code  # torch

    stopped = [
        each.text.replace(each.reason, reason, 1)  # a worker has its own reason
        for each in reports.values()
        if each.state == "stopped"
    ]
    complete = sum(each.state == "complete" for each in reports.values())
    text = (
        f"stopped by {reason}: {complete} of {wanted} runs are complete, {len(stopped)} wrote a "
        "checkpoint; the same command continues"
    )
    return Interrupted(stopped[0] if stopped and wanted == 1 else text, reason, exit_code(reason))
