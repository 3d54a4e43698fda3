"""Losses of a run as curves, in few enough points to be drawn."""

import numpy as np

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
    key = "losses", folder.name, folder.hashes("metrics/")
    return memory.get(key, lambda: packed(curves(folder)), len)
