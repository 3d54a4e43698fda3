"""How far several runs are: what is committed in the store, whoever trains them, and wherever."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hopscope.errors import StoreError
from hopscope.store import Store
from hopscope.store.manifest import read_manifest
from hopscope.workers.fleets import together
from hopscope.workers.job import Job, Report


@dataclass
class Progress:
    """How far all jobs of a sweep are."""

    jobs: Sequence[Job]
    reports: dict[str, Report] = field(default_factory=dict)
    """The last report on each run, by its name."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        recipes = [recipe for job in self.jobs for recipe in job.read()]
        self.runs, self.all_steps = len(recipes), sum(recipe.steps for recipe in recipes)
        self.begun, self.first = self.clock(), self.steps()

    def steps(self) -> int:
        """Committed steps of all models together."""
        return sum(map(steps_of, self.jobs))

    def seconds_left(self, steps: int) -> float | None:
        """Seconds until the end at the rate so far; None before the first commit."""
        done, passed = steps - self.first, self.clock() - self.begun
        return (self.all_steps - steps) * passed / done if done > 0 else None

    def count(self, state: str) -> int:
        """Runs that were reported in this state."""
        return sum(report.state == state for report in self.reports.values())


def steps_of(job: Job) -> int:
    """Committed steps of all models of a job, in their fleet or by themselves."""
    recipes, store = job.read(), Store(job.store)
    fleet = _committed(store, together(recipes).run_name()) if len(recipes) > 1 else 0
    return sum(max(_committed(store, each.run_name()), fleet) for each in recipes)


def _committed(store: Store, name: str) -> int:
    """The committed steps of a run; 0 if it is not there or cannot be read."""
    try:
        return read_manifest(store.root / name).step
    except StoreError:
        return 0
