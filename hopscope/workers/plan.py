"""What a sweep still needs: which runs are there, and how long the rest may take."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hopscope.configs import Recipe
from hopscope.errors import StoreError
from hopscope.store import RunFolder, Store
from hopscope.workers.shards import alike


@dataclass(frozen=True)
class Planned:
    """Recipes that differ in their seeds alone."""

    title: str
    seeds: tuple[int, ...]
    complete: int
    begun: int
    damaged: int
    seconds: float | None
    """How long the rest takes, one run after the other, at the rate of those that have begun; None
    if none has."""

    @property
    def runs(self) -> int:
        """How many there are."""
        return self.complete + self.begun + self.damaged + self.missing

    missing: int = 0
    """Runs of which there is nothing."""

    def to_dict(self) -> dict[str, Any]:
        """The row of a table."""
        hours = None if self.seconds is None else round(self.seconds / 3600, 3)
        return {
            "recipe": self.title,
            "seeds": list(self.seeds),
            "runs": self.runs,
            "complete": self.complete,
            "begun": self.begun,
            "damaged": self.damaged,
            "missing": self.missing,
            "hours": hours,
        }


def plan(recipes: Sequence[Recipe], store: Store) -> list[Planned]:
    """What there is of these recipes, and what is missing, in their order."""
    groups: dict[str, list[Recipe]] = defaultdict(list)
    for recipe in recipes:
        groups[alike(recipe)].append(recipe)
    return [_planned(group, store) for group in groups.values()]


def _planned(group: Sequence[Recipe], store: Store) -> Planned:
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
        seconds=_seconds(group, done),
    )


def _state(recipe: Recipe, store: Store) -> RunFolder | str:
    """Its run, if that is there and whole."""
    path = store.root / recipe.run_name()
    if not path.exists():
        return "missing"
    try:
        return RunFolder(path)
    except StoreError:
        return "damaged"


def _seconds(group: Sequence[Recipe], done: Sequence[RunFolder]) -> float | None:
    """The seconds that are left, if the rest goes as what was done."""
    steps = sum(folder.manifest.step * len(folder.experiment.seeds) for folder in done)
    if not steps:
        return None
    all_steps = sum(recipe.steps * len(recipe.seeds) for recipe in group)
    return sum(folder.manifest.seconds for folder in done) / steps * (all_steps - steps)
