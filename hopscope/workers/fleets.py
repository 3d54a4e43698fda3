"""Train runs that differ only in their seeds as one fleet, and keep them as separate runs.

The same rule holds for one process, many, Ray and shards: recipes of one shape, in the order of
their seeds, are cut into packs of four. A run that was begun continues as it began: alone, or in
its fleet.

While it trains, a fleet is an ordinary run: it can be stopped and killed, and the sweep continues
it. Then each member becomes the run of its own recipe, with bit-identical tensors and losses, and
the fleet is removed unless a user added something to it. The file PACKED marks such a fleet. If a
user trains a recipe with several seeds directly, its run has no mark (or loses it) and is kept as a
fleet.
"""

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from hopscope.configs import Experiment, Recipe
from hopscope.configs.kinds import fetched, kind_of
from hopscope.configs.recipe import SPLITS, R, of_seeds
from hopscope.errors import (
    OF_ONE_RUN,
    ConfigError,
    Diverged,
    RunWarning,
    StoreError,
    StoreUnwritable,
)
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import CHECKPOINTS
from hopscope.store.folder import discard
from hopscope.store.manifest import MANIFEST, PACKED, is_derived
from hopscope.store.metrics import loss_rows, losses, losses_file
from hopscope.store.tables import METRICS

if TYPE_CHECKING:
    from hopscope.runs import Stop, Watcher

PACK = 4
"""Models in a pack. It must not depend on the number of workers, because the last bits of a model
depend on the size of its fleet."""

Pack = tuple[Recipe, ...]


def check_pack(pack: object) -> None:
    """Raise ConfigError unless `pack` is a positive number of models."""
    if not isinstance(pack, int) or pack < 1:
        raise ConfigError(f"pack is {pack!r}; expected a number of models from 1 on")


def packs(recipes: Sequence[Recipe], most: int) -> list[Pack]:
    """The recipes in packs of at most `most`: recipes of one shape, in the order of their seeds."""
    groups: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        alone = not isinstance(recipe, Experiment) or len(recipe.seeds) > 1
        key = recipe.run_name() if alone else recipe.hash_without_seeds()
        groups.setdefault(key, []).append(recipe)
    ordered = [sorted(group, key=lambda recipe: recipe.seeds) for group in groups.values()]
    return [tuple(group[at : at + most]) for group in ordered for at in range(0, len(group), most)]


def jobs_of(
    recipes: Sequence[Recipe], missing: Sequence[Recipe], store: Store, most: int
) -> list[Pack]:
    """Return the jobs that complete the missing recipes.

    These are fleets that were begun (also complete ones that were not yet removed), then for each
    pack its new runs together, and its begun runs one by one.
    """
    jobs: list[Pack] = [tuple(of_seeds(fleet)) for fleet in begun_fleets(recipes, missing, store)]
    left = _names(missing).difference(*map(_names, jobs))
    for pack in packs(recipes, most):
        rest = [each for each in pack if each.run_name() in left]
        begun = [each for each in rest if _is_begun(each, store)]
        new = tuple(each for each in rest if each not in begun)
        jobs += [*([new] if new else []), *((each,) for each in begun)]
    return jobs


def together(pack: Sequence[R]) -> R:
    """The recipe of the fleet of these models."""
    seeds = tuple(seed for recipe in pack for seed in recipe.seeds)
    assert len({recipe.hash_without_seeds() for recipe in pack}) == 1
    return pack[0].replace(seeds=seeds)


def begun_fleets(
    recipes: Sequence[Recipe], missing: Sequence[Recipe], store: Store
) -> list[Experiment]:
    """The fleets in the store that train some of the missing recipes, or that are complete and
    trained some of all the recipes.
    """
    fleets: list[Experiment] = []
    for mark in sorted(store.root.glob(f"[!.]*/{PACKED}")):
        with suppress(StoreError):  # a damaged fleet: its members are trained again
            folder = RunFolder(mark.parent)
            fleet = folder.recipe_as(Experiment)
            wanted = _names(recipes if folder.manifest.complete else missing)
            if folder.packed and wanted & _names(of_seeds(fleet)):
                fleets.append(fleet)
    return fleets


def _names(recipes: Iterable[Recipe]) -> set[str]:
    return {recipe.run_name() for recipe in recipes}


def is_held(job: Sequence[Recipe], store: Store) -> bool:
    """Return whether a process writes to a run of this job, to its fleet, or to another fleet with
    one of its models. The job's fleet counts even without a mark (a user may train it directly).
    """
    own = [together(job)] if len(job) > 1 else []
    for each in (*job, *own, *begun_fleets(job, job, store)):
        with suppress(StoreError):  # no process writes to a damaged run
            if RunFolder(store.root / each.run_name()).in_training():
                return True
    return False


def _is_begun(recipe: Recipe, store: Store) -> bool:
    """Return whether the run has committed results; True if it is damaged (training reports it)."""
    path = store.root / recipe.run_name()
    try:
        return os.path.lexists(path / MANIFEST) and RunFolder(path).begun
    except StoreError:
        return True


def train_fleet(
    pack: Sequence[Recipe],
    store: Store,
    device: str,
    watcher: "Watcher | None",
    threads: int | None,
    stop: "Stop | None",
) -> None:
    """Train these recipes as one fleet, then split it into runs.

    If a member diverges, the fleet is split at the last checkpoint, and all members continue alone.
    """
    from hopscope.runs.runner import prepared  # torch

    fleet = together(pack)
    start = partial(fetched(kind_of(fleet).prepare), fleet, device)
    names = json.dumps({"members": [each.run_name() for each in pack]})
    with suppress(Diverged):
        prepared(fleet, start, store, watcher, stop, threads, mark=f"{names}\n".encode())
    split_fleet(RunFolder(store.root / fleet.run_name()), store)


def split_fleet(fleet: RunFolder, store: Store) -> None:
    """Make each member of a fleet a separate run at the step of the fleet, then remove the fleet.

    A member that already has a run keeps it. A fleet with a user's files or tags is not removed.
    """
    troubles = []
    with fleet.locked():
        for number, recipe in enumerate(of_seeds(fleet.recipe)):
            try:
                own = store.create(recipe)
                with own.locked():
                    if not own.begun:
                        _commit_member(own, fleet, number)
            except (StoreUnwritable, *OF_ONE_RUN) as error:  # the others may still be kept
                troubles.append(error)
        if troubles:
            raise troubles[0]
        try:
            keeps = fleet.packed and _has_additions(fleet, store)
        except StoreError as error:  # the next sweep tries again
            warnings.warn(f"{fleet.name} is not removed yet: {error}", RunWarning, stacklevel=3)
            return
        if keeps:
            fleet.commit({}, drop=(PACKED,))
            warnings.warn(
                f"{fleet.name} has files or tags of yours, so it was not removed when it was "
                f"split into runs of its seeds: `{fleet.command('rm')}` removes it",
                RunWarning,
                stacklevel=3,
            )
        elif fleet.packed:
            discard(fleet.path)


def _has_additions(fleet: RunFolder, store: Store) -> bool:
    """Return whether a fleet has tags, a user's files, or derived files such as circuits.

    Hidden files such as .DS_Store do not count.
    """
    derived = any(map(is_derived, fleet.manifest.files))
    own = any(not PurePath(name).name.startswith(".") for name in fleet.untracked())
    return derived or own or fleet.name in store.tags()


def _commit_member(own: RunFolder, fleet: RunFolder, number: int) -> None:
    """Commit a member's part of the fleet as a run."""
    state, seeds = fleet.manifest, fleet.recipe.seeds
    own.commit(
        {**_metrics(own, fleet, number), **dict(_tensors(fleet, number))},
        step=state.step,
        complete=state.complete,
        precision=state.precision,
        seconds=round(state.seconds / len(seeds), 3),
        computed=tuple(each.model_copy(update={"fleet": seeds}) for each in state.computed),
    )


def _metrics(own: RunFolder, fleet: RunFolder, number: int) -> dict[str, bytes]:
    """A member's rows of the fleet's losses."""
    step, complete = fleet.manifest.step, fleet.manifest.complete
    parts = []
    for split in SPLITS:
        steps, values = losses(fleet, split)
        parts.append(loss_rows(split, own.recipe, steps, values[:, number : number + 1]))
    return {METRICS.file if complete else METRICS.part_name(0, step): losses_file(parts)}


def _tensors(fleet: RunFolder, number: int) -> Iterator[tuple[str, bytes]]:
    """A member's part of every checkpoint and of the optimiser's state."""
    from hopscope.runs.checkpoint import read_tensors, to_safetensors  # torch

    for name in fleet.files(CHECKPOINTS):
        stacked = read_tensors(fleet, name)
        state = {key: each[number].contiguous() for key, each in stacked.items()}
        yield name, to_safetensors(state)
