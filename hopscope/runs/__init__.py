"""The life of a run, whatever is computed in it."""

from hopscope.runs.api import opened, train
from hopscope.runs.stepper import MakeStepper, Stepper, Watcher
from hopscope.runs.stop import TIME, Stop

__all__ = [
    "TIME",
    "MakeStepper",
    "Stepper",
    "Stop",
    "Watcher",
    "opened",
    "train",
]
