"""Circuits: read the heads, prove what they do, watch it emerge. Knows no training.

Results (circuits, role maps, emergence) are data without torch; what computes them is fetched with
torch when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.circuits.ablation import Ablation as Ablation
    from hopscope.circuits.ablation import Carried as Carried
    from hopscope.circuits.ablator import Ablator as Ablator
    from hopscope.circuits.account import Account as Account
    from hopscope.circuits.adapters import (
        BlockAdapter as BlockAdapter,
    )
    from hopscope.circuits.adapters import (
        CallbackModel as CallbackModel,
    )
    from hopscope.circuits.adapters import (
        EncoderAdapter as EncoderAdapter,
    )
    from hopscope.circuits.adapters import (
        adapter_of as adapter_of,
    )
    from hopscope.circuits.adapters import (
        nanogpt as nanogpt,
    )
    from hopscope.circuits.attention import (
        attention_maps as attention_maps,
    )
    from hopscope.circuits.attention import (
        patterns as patterns,
    )
    from hopscope.circuits.attention import (
        role_maps as role_maps,
    )
    from hopscope.circuits.circuit import Circuit as Circuit
    from hopscope.circuits.circuit_patching import patch_circuit as patch_circuit
    from hopscope.circuits.components import (
        Component as Component,
    )
    from hopscope.circuits.components import (
        Estimate as Estimate,
    )
    from hopscope.circuits.components import (
        Losses as Losses,
    )
    from hopscope.circuits.components import (
        Score as Score,
    )
    from hopscope.circuits.components import (
        Table as Table,
    )
    from hopscope.circuits.diagnostics import Diagnostics as Diagnostics
    from hopscope.circuits.diagnostics import diagnose as diagnose
    from hopscope.circuits.discovery import discover as discover
    from hopscope.circuits.effects import (
        Averaged as Averaged,
    )
    from hopscope.circuits.effects import (
        Effect as Effect,
    )
    from hopscope.circuits.effects import (
        Patched as Patched,
    )
    from hopscope.circuits.effects import (
        Site as Site,
    )
    from hopscope.circuits.emergence import Emergence as Emergence
    from hopscope.circuits.engine import Adapter as Adapter
    from hopscope.circuits.engine import Additive as Additive
    from hopscope.circuits.exam import Exam as Exam
    from hopscope.circuits.exam import exam_of as exam_of
    from hopscope.circuits.maps import RoleMaps as RoleMaps
    from hopscope.circuits.own import Drawn as Drawn
    from hopscope.circuits.own import OwnTask as OwnTask
    from hopscope.circuits.pairs import Pairs as Pairs
    from hopscope.circuits.pairs import pairs_of as pairs_of
    from hopscope.circuits.patching import patch as patch
    from hopscope.circuits.pattern import (
        Pattern as Pattern,
    )
    from hopscope.circuits.pattern import (
        Source as Source,
    )
    from hopscope.circuits.pattern import (
        Target as Target,
    )
    from hopscope.circuits.pattern import (
        along as along,
    )
    from hopscope.circuits.pattern import (
        table_of as table_of,
    )
    from hopscope.circuits.pattern import (
        target as target,
    )
    from hopscope.circuits.probe import (
        Decodability as Decodability,
    )
    from hopscope.circuits.probe import (
        Probe as Probe,
    )
    from hopscope.circuits.probe import (
        ProbeHistory as ProbeHistory,
    )
    from hopscope.circuits.probing import probe_history as probe_history
    from hopscope.circuits.ranking import Arrow as Arrow
    from hopscope.circuits.ranking import Baselines as Baselines
    from hopscope.circuits.ranking import Ranking as Ranking
    from hopscope.circuits.repeated import repeated_tokens as repeated_tokens
    from hopscope.circuits.tables import estimate_tables as estimate_tables

_FILES = {
    "ablation": (
        "Ablation",
        "Carried",
    ),
    "ablator": ("Ablator",),
    "account": ("Account",),
    "adapters": (
        "BlockAdapter",
        "CallbackModel",
        "EncoderAdapter",
        "adapter_of",
        "nanogpt",
    ),
    "attention": (
        "attention_maps",
        "patterns",
        "role_maps",
    ),
    "circuit": ("Circuit",),
    "circuit_patching": ("patch_circuit",),
    "components": (
        "Component",
        "Estimate",
        "Losses",
        "Score",
        "Table",
    ),
    "diagnostics": ("Diagnostics", "diagnose"),
    "discovery": ("discover",),
    "effects": (
        "Averaged",
        "Effect",
        "Patched",
        "Site",
    ),
    "emergence": ("Emergence",),
    "engine": (
        "Adapter",
        "Additive",
    ),
    "exam": (
        "Exam",
        "exam_of",
    ),
    "maps": ("RoleMaps",),
    "own": (
        "Drawn",
        "OwnTask",
    ),
    "pairs": (
        "Pairs",
        "pairs_of",
    ),
    "patching": ("patch",),
    "pattern": (
        "Pattern",
        "Source",
        "Target",
        "along",
        "table_of",
        "target",
    ),
    "probe": (
        "Decodability",
        "Probe",
        "ProbeHistory",
    ),
    "probing": ("probe_history",),
    "ranking": (
        "Arrow",
        "Baselines",
        "Ranking",
    ),
    "repeated": ("repeated_tokens",),
    "tables": ("estimate_tables",),
}
_HOME = {name: file for file, names in _FILES.items() for name in names}
__all__ = [*_HOME]  # noqa: PLE0604  (mypy reads the imports above)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hopscope.circuits' has no attribute {name!r}")
    return getattr(import_module(f"hopscope.circuits.{_HOME[name]}"), name)
