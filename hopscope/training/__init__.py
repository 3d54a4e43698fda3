"""The loop, fleets, checkpoints, exact resume."""

from hopscope.training.loop import Watcher, train
from hopscope.training.prolong import prolong
from hopscope.training.run import Run

__all__ = ["Run", "Watcher", "prolong", "train"]
