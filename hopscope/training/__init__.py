"""The training of transformers over facts: steps, fleets, precision."""

from hopscope.runs import Watcher, train
from hopscope.training.prolong import prolong
from hopscope.training.run import Run

__all__ = ["Run", "Watcher", "prolong", "train"]
