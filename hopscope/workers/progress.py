"""How far jobs are, from what their runs have committed: whoever trains them, and wherever."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hopscope.configs import read_recipe
from hopscope.errors import StoreError
from hopscope.store.manifest import read_manifest
from hopscope.workers.job import Job, Report
from hopscope.workers.packing import packable, together


@dataclass
class Progress:
    """How far all jobs of a sweep are."""

    jobs: Sequence[Job]
    reports: dict[str, Report] = field(default_factory=dict)
    """What became of each run that was heard of, by its name."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        recipes = [read_recipe(text) for job in self.jobs for text in job.recipes]
        self.runs, self.all_steps = len(recipes), sum(recipe.steps for recipe in recipes)
        self.begun, self.first = self.clock(), self.steps()

    def steps(self) -> int:
        """Steps of all models together that are trained and committed."""
        return sum(map(steps_of, self.jobs))

    def seconds_left(self, steps: int) -> float | None:
        """How long the rest takes at the rate so far; None while nothing has come of it yet."""
        done, passed = steps - self.first, self.clock() - self.begun
        return (self.all_steps - steps) * passed / done if done > 0 else None

    def count(self, state: str) -> int:
        """How many runs were reported so."""
        return sum(report.state == state for report in self.reports.values())


def steps_of(job: Job) -> int:
    """Committed steps of all models of a job, trained as one or by themselves."""
    steps = [_committed(place) for place in places(job)]
    alone, fleet = steps[: len(job.recipes)], max(steps[len(job.recipes) :], default=0)
    return sum(max(each, fleet) for each in alone)


def places(job: Job) -> list[Path]:
    """The folders of its runs, in their order; then that of the fleet as which it trains them."""
    recipes, root = [read_recipe(text) for text in job.recipes], Path(job.store)
    alike = [found for recipe in recipes if (found := packable(recipe))]
    runs = [*recipes, *([together(alike)] if len(alike) > 1 else [])]
    return [root / each.run_name() for each in runs]


def _committed(path: Path) -> int:
    """The steps that a run has committed; none, if it is not there or cannot be read."""
    try:
        return read_manifest(path).step
    except StoreError:
        return 0
