"""hopscope: a microscope for multi-hop attention.

The main names are available here; each is imported from its subpackage on first use. Importing the
package has one side effect: it sets how long waiting OpenMP threads spin (`_wait_briefly`).
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.circuits import Circuit, attention_maps, discover, watched
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
    "watched",
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
    "watched": "circuits",
}


_SPINS = "5000"
"""How many turns a waiting thread of GNU OpenMP spins before it sleeps: the smallest number that
does not slow hopscope down on an otherwise idle machine."""


def _wait_briefly() -> None:
    """Make waiting OpenMP threads sleep soon, unless the user has set how they wait.

    By default they spin for several milliseconds. If another program occupies one of the cores,
    nearly every operation waits that long for the thread on that core (`benchmarks/busy.py`).
    OpenMP reads the variable when torch is loaded; if torch is loaded already,
    `wait_briefly_from_now_on` is called instead.
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
