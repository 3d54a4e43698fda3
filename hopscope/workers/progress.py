"""The plan of a sweep (which runs remain), and its progress."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from hopscope.configs import Recipe
from hopscope.configs.recipe import differing
from hopscope.errors import StoreError
from hopscope.store import RunFolder, Store
from hopscope.store.manifest import read_manifest
from hopscope.workers.fleets import jobs_of, together
from hopscope.workers.job import Job, Report


@dataclass(frozen=True)
class Plan:
    """The state of recipes that differ only in their seeds."""

    title: str
    settings: Mapping[str, Any]
    """The settings in which recipes of this title differ, with their values."""
    seeds: tuple[int, ...]
    complete: int
    begun: int
    damaged: int
    missing: int
    """Recipes without a run."""
    jobs: tuple[int, ...]
    """The number of models in each remaining job."""
    seconds: float | None
    """Time left, one run after the other, at the rate of the runs so far; None if no run has
    begun."""

    @property
    def runs(self) -> int:
        """The number of recipes."""
        return self.complete + self.begun + self.damaged + self.missing

    def to_dict(self) -> dict[str, Any]:
        """The row of a table."""
        return {
            "recipe": self.title,
            "settings": dict(self.settings),
            "seeds": list(self.seeds),
            "runs": self.runs,
            "complete": self.complete,
            "begun": self.begun,
            "damaged": self.damaged,
            "missing": self.missing,
            "jobs": list(self.jobs),
            "hours": None if self.seconds is None else round(self.seconds / 3600, 6),
        }


def plans(recipes: Sequence[Recipe], store: Store, pack: int) -> list[Plan]:
    """Return a plan for each group of recipes that differ only in their seeds."""
    groups: dict[str, list[Recipe]] = defaultdict(list)
    for recipe in recipes:
        groups[recipe.hash_without_seeds()].append(recipe)
    alike: dict[str, list[Recipe]] = defaultdict(list)
    for first, *_ in groups.values():
        alike[first.title()].append(first)
    fields = {title: differing(firsts).keys() - {"seeds"} for title, firsts in alike.items()}
    return [_plan(group, fields[group[0].title()], store, pack) for group in groups.values()]


def _plan(group: Sequence[Recipe], fields: Set[str], store: Store, pack: int) -> Plan:
    runs, left, damaged = dict[str, RunFolder](), list[Recipe](), set[str]()
    for recipe in group:
        name, run = recipe.run_name(), _found(recipe, store)
        if run is not None:
            runs[name] = run
        elif os.path.lexists(store.root / name):
            damaged.add(name)
        if run is None or not run.manifest.complete:
            left.append(recipe)
    jobs = jobs_of(group, left, store, pack)
    fleets = dict[str, RunFolder]()  # by the names of their members
    for job in jobs:
        if len(job) > 1 and (fleet := _found(together(job), store)) is not None:
            fleets |= {recipe.run_name(): fleet for recipe in job}
    begun = {recipe.run_name() for recipe in left} & {*runs, *fleets} - damaged
    return Plan(
        title=group[0].title(),
        settings={field: own for field, own in group[0].named().items() if field in fields},
        seeds=tuple(seed for recipe in group for seed in recipe.seeds),
        complete=len(group) - len(left),
        begun=len(begun),
        damaged=len(damaged),
        missing=len(left) - len(begun) - len(damaged),
        jobs=tuple(sum(len(recipe.seeds) for recipe in job) for job in jobs),
        seconds=_seconds_left([*chain(*jobs)], runs, fleets),
    )


def _found(recipe: Recipe, store: Store) -> RunFolder | None:
    with suppress(StoreError):
        return store.of(recipe)
    return None


def _seconds_left(
    recipes: Sequence[Recipe], runs: Mapping[str, RunFolder], fleets: Mapping[str, RunFolder]
) -> float | None:
    found = {run.name: run for run in (*runs.values(), *fleets.values())}.values()
    done = sum(run.manifest.step * len(run.recipe.seeds) for run in found)
    if not done:
        return None
    left = 0
    for recipe in recipes:
        name = recipe.run_name()
        step = max((each[name].manifest.step for each in (runs, fleets) if name in each), default=0)
        left += (recipe.steps - step) * len(recipe.seeds)
    return sum(run.manifest.seconds for run in found) / done * left


@dataclass
class SweepProgress:
    """The committed steps of all jobs of a sweep, read from the store."""

    jobs: Sequence[Job]
    reports: dict[str, Report] = field(default_factory=dict)
    """The last report on each run, by the name of the run."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        recipes = [recipe for job in self.jobs for recipe in job.recipes]
        self.runs, self.all_steps = len(recipes), sum(recipe.steps for recipe in recipes)
        self._seen = [(self.steps(), self.clock())]

    def steps(self) -> int:
        """Committed steps of all models together."""
        return sum(map(committed_steps, self.jobs))

    def seconds_left(self, steps: int) -> float | None:
        """Estimate the seconds until the end; None before the second commit.

        The rate is that between the first commit and the last. The time before the first commit is
        not used, because runs may continue from the middle of an interval.
        """
        now = self.clock()
        if steps > self._seen[-1][0]:
            self._seen = [*self._seen[:2], (steps, now)]
        _, *commits = self._seen
        if len(commits) < 2:
            return None
        (first, begun), (last, then) = commits[0], commits[-1]
        left = (self.all_steps - last) * (then - begun) / (last - first)
        return max(0.0, left - (now - then))

    def count(self, state: str) -> int:
        """The number of runs that were reported in this state."""
        return sum(report.state == state for report in self.reports.values())


def committed_steps(job: Job) -> int:
    """Committed steps of all models of a job, in their fleet or alone."""
    store = Store(job.store)
    fleet = _committed(store, job.fleet) if job.fleet else 0
    return sum(max(_committed(store, name), fleet) for name in job.names)


def _committed(store: Store, name: str) -> int:
    with suppress(StoreError):  # it does not exist, or cannot be read
        return read_manifest(store.root / name).step
    return 0
