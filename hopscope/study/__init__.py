"""Studies of a model with its task (`Study`), and comparisons of two runs (`compare`).

Comparing two runs does not need torch, so modules that need it are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.study.comparison import Comparison, compare
    from hopscope.study.run import RunStudy, load, open_run
    from hopscope.study.study import Study

_HOME = {
    "Comparison": "comparison", "RunStudy": "run", "Study": "study", "compare": "comparison",
    "load": "run", "open_run": "run",
}  # fmt: skip
__all__ = ["Comparison", "RunStudy", "Study", "compare", "load", "open_run"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hopscope.study' has no attribute {name!r}")
    return getattr(import_module(f"hopscope.study.{_HOME[name]}"), name)
