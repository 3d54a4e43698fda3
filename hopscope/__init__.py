"""hopscope: a microscope for multi-hop attention.

The names of the main flow are here; importing the package itself does nothing, and each name is
fetched from its room when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.circuits import Circuit, attention_maps, discover
    from hopscope.circuits.tracking import emergence
    from hopscope.configs import (
        MQAR,
        ConditionalRetrieval,
        Descent,
        Experiment,
        Induction,
        InductionModel,
        KHop,
        MarkovExperiment,
        MarkovProcess,
        Model,
        Retrieval,
        Training,
    )
    from hopscope.errors import HopscopeError
    from hopscope.models import Transformer
    from hopscope.runs import train
    from hopscope.store import Store
    from hopscope.study import compare, load
    from hopscope.tracing.reading import contents
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
    "MarkovExperiment",
    "MarkovProcess",
    "Model",
    "Retrieval",
    "Run",
    "Store",
    "Training",
    "Transformer",
    "attention_maps",
    "compare",
    "contents",
    "discover",
    "emergence",
    "load",
    "train",
]

_ROOMS = {
    "Circuit": "circuits",
    "HopscopeError": "errors",
    "Run": "training",
    "Store": "store",
    "Transformer": "models",
    "attention_maps": "circuits",
    "compare": "study",
    "contents": "tracing.reading",
    "discover": "circuits",
    "emergence": "circuits.tracking",
    "load": "study",
    "train": "runs",
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'hopscope' has no attribute {name!r}")
    room = _ROOMS.get(name, "configs")
    return getattr(import_module(f"hopscope.{room}"), name)
