"""hopscope: a microscope for multi-hop attention.

The names of the main flow are here, and each is fetched from its room when it is first used.
Importing the package itself does one thing: it sets how long threads wait for each other.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.circuits import Circuit, attention_maps, discover
    from hopscope.circuits.probing import probe
    from hopscope.circuits.tracking import emergence
    from hopscope.configs import (
        MQAR,
        ConditionalRetrieval,
        Descent,
        Experiment,
        Induction,
        InductionModel,
        KHop,
        Model,
        NgramExperiment,
        NgramProcess,
        Retrieval,
        Training,
    )
    from hopscope.errors import HopscopeError
    from hopscope.models import Transformer
    from hopscope.runs import train
    from hopscope.store import Store
    from hopscope.study import Study, compare, load, open_run
    from hopscope.training import Run

__version__ = "0.1.0"

__all__ = [
    "MQAR",
    "Circuit",
    "ConditionalRetrieval",
    "Descent",
    "Experiment",
    "HopscopeError",
    "Induction",
    "InductionModel",
    "KHop",
    "Model",
    "NgramExperiment",
    "NgramProcess",
    "Retrieval",
    "Run",
    "Store",
    "Study",
    "Training",
    "Transformer",
    "attention_maps",
    "compare",
    "discover",
    "emergence",
    "load",
    "open_run",
    "probe",
    "train",
]

_ROOMS = {
    "Circuit": "circuits",
    "HopscopeError": "errors",
    "Run": "training",
    "Store": "store",
    "Study": "study",
    "Transformer": "models",
    "attention_maps": "circuits",
    "compare": "study",
    "discover": "circuits",
    "emergence": "circuits.tracking",
    "load": "study",
    "open_run": "study",
    "probe": "circuits.probing",
    "train": "runs",
}


_SPINS = "5000"
"""Turns for which a waiting thread of GNU's OpenMP spins before it sleeps: the fewest that cost
nothing where no other program computes."""


def _wait_briefly() -> None:
    """Have threads that wait for each other sleep soon, unless the user has said how they wait.

    By default they spin for several milliseconds. If another program has one of the cores, nearly
    every operation waits so long for the thread that was there (`benchmarks/busy.py`). OpenMP reads
    this when torch is loaded; a torch that is loaded already needs `wait_briefly_from_now_on`.
    """
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        return
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    if "torch" in sys.modules:
        from hopscope.machine import wait_briefly_from_now_on

        wait_briefly_from_now_on()


_wait_briefly()


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'hopscope' has no attribute {name!r}")
    room = _ROOMS.get(name, "configs")
    return getattr(import_module(f"hopscope.{room}"), name)
