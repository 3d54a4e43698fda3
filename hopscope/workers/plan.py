"""What a sweep still needs: which runs are there, how the rest is packed, and how long it takes."""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hopscope.configs import Recipe
from hopscope.errors import StoreError
from hopscope.store import RunFolder, Store
from hopscope.workers.fleets import jobs_of


@dataclass(frozen=True)
class Planned:
    """Recipes that differ in their seeds alone."""

    title: str
    seeds: tuple[int, ...]
    complete: int
    begun: int
    damaged: int
    missing: int
    """Runs of which there is nothing."""
    jobs: tuple[int, ...]
    """How many models each job trains that is left to do."""
    seconds: float | None
    """How long the rest takes, one run after the other, at the rate of those that have begun; None
    if none has."""

    @property
    def runs(self) -> int:
        """How many there are."""
        return self.complete + self.begun + self.damaged + self.missing

    def to_dict(self) -> dict[str, Any]:
        """The row of a table."""
        return {
            "recipe": self.title,
            "seeds": list(self.seeds),
            "runs": self.runs,
            "complete": self.complete,
            "begun": self.begun,
            "damaged": self.damaged,
            "missing": self.missing,
            "jobs": list(self.jobs),
            "hours": None if self.seconds is None else round(self.seconds / 3600, 6),
        }


def plan(recipes: Sequence[Recipe], store: Store, pack: int) -> list[Planned]:
    """What there is of these recipes, what is missing, and how that would be packed."""
    groups: dict[str, list[Recipe]] = defaultdict(list)
    for recipe in recipes:
        groups[recipe.hash_without_seeds()].append(recipe)
    return [_planned(group, store, pack) for group in groups.values()]


def _planned(group: Sequence[Recipe], store: Store, pack: int) -> Planned:
    states = [_state(recipe, store) for recipe in group]
    done = [state for state in states if isinstance(state, RunFolder)]
    complete = sum(folder.manifest.complete for folder in done)
    damaged = states.count("damaged")
    return Planned(
        title=group[0].title(),
        seeds=tuple(seed for recipe in group for seed in recipe.seeds),
        complete=complete,
        begun=len(done) - complete,
        damaged=damaged,
        missing=len(group) - len(done) - damaged,
        jobs=_jobs(group, states, store, pack),
        seconds=_seconds(group, done),
    )


def _jobs(
    group: Sequence[Recipe], states: Sequence[RunFolder | str], store: Store, pack: int
) -> tuple[int, ...]:
    left = [
        recipe
        for recipe, state in zip(group, states, strict=True)
        if isinstance(state, str) or not state.manifest.complete
    ]
    jobs = jobs_of(group, left, store, pack)
    return tuple(sum(len(recipe.seeds) for recipe in job) for job in jobs)


def _state(recipe: Recipe, store: Store) -> RunFolder | str:
    """Its run, if that is there and whole."""
    try:
        found = store.of(recipe)
    except StoreError:
        return "damaged"
    there = os.path.lexists(store.root / recipe.run_name())
    return found or ("damaged" if there else "missing")


def _seconds(group: Sequence[Recipe], done: Sequence[RunFolder]) -> float | None:
    """The seconds that are left, if the rest goes as what was done."""
    steps = sum(folder.manifest.step * len(folder.recipe.seeds) for folder in done)
    if not steps:
        return None
    all_steps = sum(recipe.steps * len(recipe.seeds) for recipe in group)
    return sum(folder.manifest.seconds for folder in done) / steps * (all_steps - steps)
