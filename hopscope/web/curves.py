"""Losses of a run as curves, reduced to a number of points that can be drawn."""

import numpy as np

from hopscope.configs.recipe import SPLITS
from hopscope.memory import Memory
from hopscope.store import RunFolder
from hopscope.store.metrics import losses
from hopscope.web.tensors import packed

POINTS = 2_000
"""Largest number of points of a curve; in longer trainings a point is the mean of several steps."""


def curves(folder: RunFolder) -> dict[str, np.ndarray]:
    """Return the steps and losses of each split, with at most `POINTS` points.

    In a long training a point is the mean over several steps, at the last of them.
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
    """Return `curves` as a file of arrays, cached for each state of the run."""
    key = "losses", folder.name, folder.hashes("metrics/")
    return memory.get(key, lambda: packed(curves(folder)), len)
