"""Losses of a run as curves, in few enough points to be drawn; and which of its seeds is meant."""

import numpy as np

from hopscope.configs import Recipe
from hopscope.errors import ConfigError
from hopscope.store import RunFolder
from hopscope.store.metrics import SPLITS, losses
from hopscope.web.memory import Memory
from hopscope.web.tensors import packed

POINTS = 2_000
"""Points of a curve; of a longer training, each is the mean of several steps."""


def curves(folder: RunFolder) -> dict[str, np.ndarray]:
    """The losses of each split; of a long training each point is a mean of several steps, and
    stands at the last of them.
    """
    found: dict[str, np.ndarray] = {}
    for split in SPLITS:
        steps, values = losses(folder, split)
        each = -(-len(steps) // POINTS) or 1
        starts = np.arange(0, len(steps), each)
        counts = np.diff([*starts, len(steps)])
        if each > 1:
            values = np.add.reduceat(values, starts) / counts[:, None, None]
        found[f"{split}_steps"] = steps[starts + counts - 1]
        found[split] = values.astype(np.float32)
    return found


def remembered_curves(folder: RunFolder, memory: Memory) -> bytes:
    """The same as a file of arrays, made once for each state of the run."""
    files = tuple(folder.manifest.files[name].sha256 for name in folder.files("metrics/"))
    return memory.get(("losses", folder.name, files), lambda: packed(curves(folder)), len)


def seed_of(folder: RunFolder, recipe: Recipe, seed: int | None) -> int:
    """The seed of the model that is meant; unset: the first."""
    if seed is not None and seed not in recipe.seeds:
        known = ", ".join(map(str, recipe.seeds))
        raise ConfigError(f"seed is {seed}; {folder.name} has the seeds {known}")
    return recipe.seeds[0] if seed is None else seed
