"""The life of a run, whatever is computed in it."""

from hopscope.runs.carry import opened, train
from hopscope.runs.stop import TIME, Stop
from hopscope.runs.watcher import NobodyWatches, Watcher
from hopscope.runs.work import Begin, Work

__all__ = [
    "TIME",
    "Begin",
    "NobodyWatches",
    "Stop",
    "Watcher",
    "Work",
    "opened",
    "train",
]
