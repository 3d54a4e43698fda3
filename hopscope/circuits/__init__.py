"""Circuits: read the heads, prove what they do, watch it emerge. Knows no training.

Results (circuits, role maps, emergence) are data without torch; what computes them is fetched with
torch when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.circuits.ablation import Ablation as Ablation, Carried as Carried
    from hopscope.circuits.ablator import Ablator as Ablator
    from hopscope.circuits.account import Account as Account
    from hopscope.circuits.adapters import BlockAdapter as BlockAdapter, CallbackModel as CallbackModel, EncoderAdapter as EncoderAdapter, adapter_of as adapter_of, nanogpt as nanogpt
    from hopscope.circuits.attention import attention_maps as attention_maps, patterns as patterns, role_maps as role_maps
    from hopscope.circuits.circuit import Circuit as Circuit
    from hopscope.circuits.circuit_patching import patch_circuit as patch_circuit
    from hopscope.circuits.components import Component as Component, Estimate as Estimate, Losses as Losses, Score as Score, Table as Table
    from hopscope.circuits.discovery import discover as discover
    from hopscope.circuits.effects import Averaged as Averaged, Effect as Effect, Patched as Patched, Site as Site
    from hopscope.circuits.emergence import Emergence as Emergence
    from hopscope.circuits.engine import Adapter as Adapter, Additive as Additive
    from hopscope.circuits.exam import Exam as Exam, exam_of as exam_of
    from hopscope.circuits.maps import RoleMaps as RoleMaps
    from hopscope.circuits.own import Drawn as Drawn, OwnTask as OwnTask
    from hopscope.circuits.pairs import Pairs as Pairs, pairs_of as pairs_of
    from hopscope.circuits.patching import patch as patch
    from hopscope.circuits.pattern import Pattern as Pattern, Source as Source, Target as Target, along as along, table_of as table_of, target as target
    from hopscope.circuits.probe import Decodability as Decodability, Probe as Probe, ProbeHistory as ProbeHistory
    from hopscope.circuits.probing import probe_history as probe_history
    from hopscope.circuits.ranking import Arrow as Arrow, Baselines as Baselines, Ranking as Ranking
    from hopscope.circuits.tables import estimate_tables as estimate_tables

_FILES = {
    "ablation": ("Ablation", "Carried",),
    "ablator": ("Ablator",),
    "account": ("Account",),
    "adapters": ("BlockAdapter", "CallbackModel", "EncoderAdapter", "adapter_of", "nanogpt",),
    "attention": ("attention_maps", "patterns", "role_maps",),
    "circuit": ("Circuit",),
    "circuit_patching": ("patch_circuit",),
    "components": ("Component", "Estimate", "Losses", "Score", "Table",),
    "discovery": ("discover",),
    "effects": ("Averaged", "Effect", "Patched", "Site",),
    "emergence": ("Emergence",),
    "engine": ("Adapter", "Additive",),
    "exam": ("Exam", "exam_of",),
    "maps": ("RoleMaps",),
    "own": ("Drawn", "OwnTask",),
    "pairs": ("Pairs", "pairs_of",),
    "patching": ("patch",),
    "pattern": ("Pattern", "Source", "Target", "along", "table_of", "target",),
    "probe": ("Decodability", "Probe", "ProbeHistory",),
    "probing": ("probe_history",),
    "ranking": ("Arrow", "Baselines", "Ranking",),
    "tables": ("estimate_tables",),
}
_HOME = {name: file for file, names in _FILES.items() for name in names}
__all__ = [*_HOME]  # noqa: PLE0604  (mypy reads the imports above)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hopscope.circuits' has no attribute {name!r}")
    return getattr(import_module(f"hopscope.circuits.{_HOME[name]}"), name)
