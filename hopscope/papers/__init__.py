"""What the papers trained, as presets; no torch here."""

from difflib import get_close_matches

from hopscope.errors import ConfigError
from hopscope.papers import demo
from hopscope.papers.musat import presets as musat
from hopscope.papers.preset import Preset

__all__ = ["Preset", "preset", "presets"]


def presets() -> dict[str, Preset]:
    """Every preset by name."""
    return {"demo": demo.preset(), **musat.presets()}


def preset(name: str) -> Preset:
    """The preset of this name."""
    known = presets()
    if name in known:
        return known[name]
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else "`hopscope presets` lists them"
    raise ConfigError(f"unknown preset {name!r}: {hint}")
