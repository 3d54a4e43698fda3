"""Probes: what every position holds. Results are data without torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.tracing.contents import Contents, Held
    from hopscope.tracing.contents_story import ContentsStory

__all__ = ["Contents", "ContentsStory", "Held"]

_FILES = {
    "tracing.contents": ("Contents", "Held"),
    "tracing.contents_story": ("ContentsStory",),
}
_HOME = {name: file for file, names in _FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hopscope.tracing' has no attribute {name!r}")
    return getattr(import_module(f"hopscope.{_HOME[name]}"), name)
