"""Circuits: read the heads, prove what they do, watch it emerge. Knows no training.

Results (mechanisms, circuits, role maps, emergence) are data without torch; what computes them is
fetched with torch when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.circuits.ablation import Ablation, Carried
    from hopscope.circuits.ablator import Ablator
    from hopscope.circuits.account import Account
    from hopscope.circuits.adapters import (
        BlockAdapter,
        CallbackModel,
        EncoderAdapter,
        adapter_of,
        nanogpt,
    )
    from hopscope.circuits.attention import attention_maps, patterns, role_maps
    from hopscope.circuits.circuit import Circuit
    from hopscope.circuits.circuit_patching import patch_circuit
    from hopscope.circuits.discovery import discover
    from hopscope.circuits.effects import Averaged, Effect, Patched, Site
    from hopscope.circuits.emergence import Emergence
    from hopscope.circuits.engine import Adapter, Additive
    from hopscope.circuits.exam import Exam, exam_of
    from hopscope.circuits.maps import RoleMaps
    from hopscope.circuits.mechanism import Aim, Mechanism, Target, aim, along
    from hopscope.circuits.own import Drawn, OwnTask
    from hopscope.circuits.pairs import Pairs, pairs_of
    from hopscope.circuits.patching import patch
    from hopscope.circuits.probe import Decodability, Probe, ProbeHistory
    from hopscope.circuits.probing import probe_history
    from hopscope.circuits.ranking import Arrow, Baselines, Ranking

__all__ = [
    "Ablation",
    "Ablator",
    "Account",
    "Adapter",
    "Additive",
    "Aim",
    "Arrow",
    "Averaged",
    "Baselines",
    "BlockAdapter",
    "CallbackModel",
    "Carried",
    "Circuit",
    "Decodability",
    "Drawn",
    "Effect",
    "Emergence",
    "EncoderAdapter",
    "Exam",
    "Mechanism",
    "OwnTask",
    "Pairs",
    "Patched",
    "Probe",
    "ProbeHistory",
    "Ranking",
    "RoleMaps",
    "Site",
    "Target",
    "adapter_of",
    "aim",
    "along",
    "attention_maps",
    "discover",
    "exam_of",
    "nanogpt",
    "pairs_of",
    "patch",
    "patch_circuit",
    "patterns",
    "probe_history",
    "role_maps",
]

_FILES = {
    "circuit_patching": ("patch_circuit",),
    "pairs": (
        "Pairs",
        "pairs_of",
    ),
    "patching": ("patch",),
    "probing": ("probe_history",),
    "ranking": (
        "Arrow",
        "Baselines",
        "Ranking",
    ),
    "ablation": ("Ablation", "Carried"),
    "account": ("Account",),
    "ablator": ("Ablator",),
    "adapters": ("BlockAdapter", "CallbackModel", "EncoderAdapter", "adapter_of", "nanogpt"),
    "attention": ("attention_maps", "patterns", "role_maps"),
    "effects": ("Averaged", "Effect", "Patched", "Site"),
    "circuit": ("Circuit",),
    "discovery": ("discover",),
    "emergence": ("Emergence",),
    "engine": ("Adapter", "Additive"),
    "exam": ("Exam", "exam_of"),
    "maps": ("RoleMaps",),
    "mechanism": ("Aim", "Mechanism", "Target", "aim", "along"),
    "own": ("Drawn", "OwnTask"),
    "probe": ("Decodability", "Probe", "ProbeHistory"),
}
_HOME = {name: file for file, names in _FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hopscope.circuits' has no attribute {name!r}")
    return getattr(import_module(f"hopscope.circuits.{_HOME[name]}"), name)
