"""Tracing: what every arrow carries (patching), and what other methods say of the same model
(baselines).

It begins where discovery ends, and knows no training. Results are data without torch; what measures
them is fetched with torch when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.circuits.account import Account
    from hopscope.circuits.carrying import Averaged, Cargo, Move, Site
    from hopscope.tracing.accounting import accounted
    from hopscope.tracing.pairs import Pairs, pairs_of
    from hopscope.tracing.patching import cargo
    from hopscope.tracing.ranking import Arrow, Baselines, Ranking

__all__ = [
    "Account",
    "Arrow",
    "Averaged",
    "Baselines",
    "Cargo",
    "Move",
    "Pairs",
    "Ranking",
    "Site",
    "accounted",
    "cargo",
    "pairs_of",
]

_FILES = {
    "circuits.account": ("Account",),
    "circuits.carrying": ("Averaged", "Cargo", "Move", "Site"),
    "tracing.accounting": ("accounted",),
    "tracing.pairs": ("Pairs", "pairs_of"),
    "tracing.patching": ("cargo",),
    "tracing.ranking": ("Arrow", "Baselines", "Ranking"),
}
_HOME = {name: file for file, names in _FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hopscope.tracing' has no attribute {name!r}")
    return getattr(import_module(f"hopscope.{_HOME[name]}"), name)
