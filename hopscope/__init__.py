"""hopscope: a microscope for multi-hop attention.

The names of the main flow are here; what is heavy is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hopscope.configs import (
    ConditionalRetrieval,
    Experiment,
    Induction,
    KHop,
    Model,
    Retrieval,
    Training,
)
from hopscope.errors import HopscopeError

if TYPE_CHECKING:
    from hopscope.models import Transformer
    from hopscope.store import Store
    from hopscope.training import Run, train

__version__ = "0.1.0"

__all__ = [
    "ConditionalRetrieval",
    "Experiment",
    "HopscopeError",
    "Induction",
    "KHop",
    "Model",
    "Retrieval",
    "Run",
    "Store",
    "Training",
    "Transformer",
    "train",
]

_HEAVY = {
    "Run": "hopscope.training",
    "Store": "hopscope.store",
    "Transformer": "hopscope.models",
    "train": "hopscope.training",
}


def __getattr__(name: str) -> Any:
    if name in _HEAVY:
        return getattr(import_module(_HEAVY[name]), name)
    raise AttributeError(f"module 'hopscope' has no attribute {name!r}")
