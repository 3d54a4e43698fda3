"""Train and open runs of any kind."""

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
