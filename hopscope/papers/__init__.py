"""The trainings of the papers, as presets, without torch."""

from typing import Any

from hopscope.errors import ConfigError
from hopscope.names import hint
from hopscope.papers import tasks
from hopscope.papers.chen import presets as chen
from hopscope.papers.musat import presets as musat
from hopscope.papers.preset import Preset

__all__ = ["Preset", "preset", "presets"]


def presets() -> dict[str, Preset[Any]]:
    """Return all presets of the papers and of the tasks, by name."""
    return {**tasks.presets(), **musat.presets(), **chen.presets()}


def preset(name: str) -> Preset[Any]:
    """Return the preset of this name; raises ConfigError if it is unknown."""
    known = presets()
    if name in known:
        return known[name]
    raise ConfigError(
        f"unknown preset {name!r}: {hint(name, known, '`hopscope presets` lists them')}"
    )
