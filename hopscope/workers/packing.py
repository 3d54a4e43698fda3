"""Pack first, place second: which recipes are trained together.

Runs of one shape, that differ in their seeds alone, become fleets: eight models as one take a third
of the time that they take one by one. What was begun goes on as it began: a run alone, a fleet as
that fleet.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import cast

from hopscope.configs import Experiment, Recipe
from hopscope.errors import ConfigError, StoreError
from hopscope.store import RunFolder, Store
from hopscope.store.manifest import MANIFEST

PACKED = "packed.json"
"""The file by which a fleet is known that will be parted into runs of their own."""

PACK = 4
"""Models of one shape that are trained as one by default. It does not depend on the number of
workers, as a member's last bits depend on the size of its fleet."""


def member(fleet: Experiment, seed: int) -> Experiment:
    """The recipe of one model of a fleet."""
    return Experiment.model_validate({**fleet.model_dump(), "seeds": (seed,)})


def together(recipes: Sequence[Experiment]) -> Experiment:
    """The recipe of the fleet of these models."""
    seeds = tuple(seed for recipe in recipes for seed in recipe.seeds)
    assert len({recipe.hash_without_seeds() for recipe in recipes}) == 1
    return Experiment.model_validate({**recipes[0].model_dump(), "seeds": seeds})


def packed(
    recipes: Sequence[Recipe], missing: Sequence[Recipe], store: Store, most: int
) -> list[tuple[Recipe, ...]]:
    """The jobs that make the missing ones of these recipes complete, each for one worker."""
    fleets = _begun_fleets(recipes, store)
    taken = {each.run_name() for fleet in fleets for each in fleet}
    left = [recipe for recipe in missing if recipe.run_name() not in taken]
    groups: dict[str, list[Recipe]] = {}
    for recipe in left:
        groups.setdefault(_key(recipe, store), []).append(recipe)
    return [*fleets, *(job for group in groups.values() for job in _cut(group, most))]


def packable(recipe: Recipe) -> Experiment | None:
    """The recipe, if its kind trains several seeds as one fleet; None for every other."""
    return cast(Experiment, recipe) if recipe.packs else None


def fleets_of(recipes: Sequence[Experiment], store: Store) -> list[tuple[Experiment, ...]]:
    """The fleets by which the recipes of a job are trained: those that hold some of them and are
    not parted yet, whoever packed them; else all as one, unless somebody has begun or completed one
    of them since they were packed.
    """
    found = _begun_fleets(recipes, store)
    alone = len(recipes) < 2 or any(_begun(recipe, store) for recipe in recipes)
    return found if found or alone else [tuple(recipes)]


def check_pack(pack: object) -> None:
    """Refuse a number of models that makes no sense."""
    if not isinstance(pack, int) or pack < 1:
        raise ConfigError(f"pack is {pack!r}; expected a number of models from 1 on")


def is_held(recipe: Recipe, store: Store) -> bool:
    """Does a process write to its run, or to the fleet that it is packed in? One that was not
    heard of for too long may be replaced.
    """
    fleets = [together(each) for each in _begun_fleets([recipe], store)]
    for each in (recipe, *fleets):
        path = store.root / each.run_name()
        with suppress(StoreError):  # nobody writes to what is no run
            if RunFolder(path).in_training():
                return True
    return False


def _key(recipe: Recipe, store: Store) -> str:
    """What is equal for those that can be trained as one."""
    found = packable(recipe)
    if found is not None and len(recipe.seeds) == 1 and not _begun(recipe, store):
        return found.hash_without_seeds()
    return recipe.run_name()


def _cut(group: Sequence[Recipe], most: int) -> list[tuple[Recipe, ...]]:
    """Recipes of one shape as jobs of nearly the same size."""
    count = -(-len(group) // most)
    ends = [number * len(group) // count for number in range(count + 1)]
    return [tuple(group[a:b]) for a, b in pairwise(ends)]


def _begun(recipe: Recipe, store: Store) -> bool:
    """Is there more of its run than the recipe? One that cannot be read is left to itself."""
    path = store.root / recipe.run_name()
    try:
        return os.path.lexists(path / MANIFEST) and RunFolder(path).begun
    except StoreError:
        return True


def _begun_fleets(recipes: Sequence[Recipe], store: Store) -> list[tuple[Experiment, ...]]:
    """The fleets that were packed before, and in which some of these recipes are."""
    wanted = {recipe.run_name() for recipe in recipes}
    found: list[tuple[Experiment, ...]] = []
    for mark in sorted(store.root.glob(f"[!.]*/{PACKED}")):
        try:
            fleet = RunFolder(mark.parent).recipe_as(Experiment)
        except StoreError:  # `hopscope runs` tells of it; its members are trained anew
            continue
        members = tuple(member(fleet, seed) for seed in fleet.seeds)
        if wanted & {each.run_name() for each in members}:
            found.append(members)
    return found
