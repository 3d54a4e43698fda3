"""Runs that differ in their seeds alone, trained as one fleet and kept as runs of their own.

While it trains, a fleet is an ordinary run: it is stopped, killed and carried on as any other. Then
every member becomes the run of its own recipe, with its share of the fleet's tensors and losses to
the bit, and the fleet is removed. A file in it says that it was made so; a fleet that somebody
trained as such has none, and stays.
"""

import json
from collections.abc import Sequence

from hopscope.configs import Experiment
from hopscope.errors import OF_ONE_RUN, Diverged
from hopscope.runs import Stop, Watcher, train
from hopscope.runs.checkpoint import read_tensors, to_safetensors
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import CHECKPOINTS
from hopscope.store.folder import discard
from hopscope.store.metrics import LOSSES, losses, part, part_name, to_parquet
from hopscope.workers.packing import PACKED, member, together


def train_fleet(
    recipes: Sequence[Experiment],
    store: Store,
    device: str,
    watcher: Watcher | None,
    threads: int | None,
    stop: Stop | None,
) -> None:
    """Train these as one; when nothing is raised, each is the run of its own recipe.

    Where one of them diverges, all are parted at the last checkpoint, to go on alone.
    """
    fleet = together(recipes)
    names = json.dumps({"members": [each.run_name() for each in recipes]})
    folder = store.create(fleet, {PACKED: f"{names}\n".encode()})
    try:
        train(fleet, store, device, watcher, threads, stop)
    except Diverged:
        part_ways(folder, store)
    else:
        part_ways(folder, store)


def part_ways(fleet: RunFolder, store: Store) -> None:
    """Make each member of a fleet a run of its own, as far as the fleet came.

    What was begun or is complete under a member's name stays as it is.
    """
    troubles = []
    with fleet.locked():
        for number, seed in enumerate(fleet.recipe.seeds):
            try:
                _keep(member(fleet.recipe_as(Experiment), seed), fleet, number, store)
            except OF_ONE_RUN as error:  # of the run under the member's name, say
                troubles.append(error)
        if troubles:
            raise troubles[0]
        if PACKED in fleet.manifest.files:
            discard(fleet.path)


def _keep(recipe: Experiment, fleet: RunFolder, number: int, store: Store) -> None:
    own = store.create(recipe)
    with own.locked():
        if not own.begun:
            _settle(own, fleet, number)


def _settle(own: RunFolder, fleet: RunFolder, number: int) -> None:
    """One commit that makes a member what the fleet made of it."""
    state, seeds = fleet.manifest, fleet.recipe.seeds
    own.commit(
        {**_metrics(own, fleet, number), **_tensors(fleet, number)},
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
    for split in ("train", "validation"):
        steps, values = losses(fleet, split)
        parts.append(part(split, own.recipe, steps, values[:, number : number + 1]))
    return {LOSSES if complete else part_name(0, step): to_parquet(parts)}


def _tensors(fleet: RunFolder, number: int) -> dict[str, bytes]:
    """A member's share of every checkpoint, and of what the optimiser keeps."""
    files = {}
    for name in fleet.files(CHECKPOINTS):
        stacked = read_tensors(fleet, name)
        state = {key: each[number].contiguous() for key, each in stacked.items()}
        files[name] = to_safetensors(state)
    return files
