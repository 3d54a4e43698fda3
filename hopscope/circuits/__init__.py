"""Circuits: find which heads solve a task, measure what they do, and when the circuit emerged.

Results (circuits, role maps, emergence) are data and need no torch. The modules that compute them
need torch, and are imported on first use. Nothing here depends on training code.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopscope.circuits.ablation import Ablation
    from hopscope.circuits.ablator import Ablations, Ablator
    from hopscope.circuits.account import Account, Averaged, Effect, Patched, Site
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
    from hopscope.circuits.components import Component, Estimate, Losses, Score, Table
    from hopscope.circuits.diagnostics import Diagnostics, diagnose
    from hopscope.circuits.discovery import discover
    from hopscope.circuits.emergence import Emergence
    from hopscope.circuits.engine import Adapter, Additive
    from hopscope.circuits.examples import Examples, SplitLoss, examples_of
    from hopscope.circuits.maps import RoleMaps
    from hopscope.circuits.own_task import Drawn, OwnTask
    from hopscope.circuits.patching import Pairs, pairs_of, patch
    from hopscope.circuits.pattern import Pattern, Source, Target, along, table_of, target
    from hopscope.circuits.probe import Decodability, Probe, ProbeHistory
    from hopscope.circuits.probing import probe_history
    from hopscope.circuits.progress import watched
    from hopscope.circuits.ranking import Arrow, Baselines, Ranking
    from hopscope.circuits.repeated import repeated_tokens
    from hopscope.circuits.tables import estimate_tables

_FILES = {
    "ablation": "Ablation",
    "ablator": "Ablations Ablator",
    "account": "Account Averaged Effect Patched Site",
    "adapters": "BlockAdapter CallbackModel EncoderAdapter adapter_of nanogpt",
    "attention": "attention_maps patterns role_maps",
    "circuit": "Circuit",
    "circuit_patching": "patch_circuit",
    "components": "Component Estimate Losses Score Table",
    "diagnostics": "Diagnostics diagnose",
    "discovery": "discover",
    "emergence": "Emergence",
    "engine": "Adapter Additive",
    "examples": "Examples SplitLoss examples_of",
    "maps": "RoleMaps",
    "own_task": "Drawn OwnTask",
    "patching": "Pairs pairs_of patch",
    "pattern": "Pattern Source Target along table_of target",
    "probe": "Decodability Probe ProbeHistory",
    "probing": "probe_history",
    "progress": "watched",
    "ranking": "Arrow Baselines Ranking",
    "repeated": "repeated_tokens",
    "tables": "estimate_tables",
}
_HOME = {name: file for file, names in _FILES.items() for name in names.split()}
__all__ = [
    "Ablation", "Ablations", "Ablator", "Account", "Adapter", "Additive", "Arrow", "Averaged",
    "Baselines", "BlockAdapter", "CallbackModel", "Circuit", "Component", "Decodability",
    "Diagnostics", "Drawn", "Effect", "Emergence", "EncoderAdapter", "Estimate", "Examples",
    "Losses", "OwnTask", "Pairs", "Patched", "Pattern", "Probe", "ProbeHistory", "Ranking",
    "RoleMaps", "Score", "Site", "Source", "SplitLoss", "Table", "Target", "adapter_of", "along",
    "attention_maps", "diagnose", "discover", "estimate_tables", "examples_of", "nanogpt",
    "pairs_of", "patch", "patch_circuit", "patterns", "probe_history", "repeated_tokens",
    "role_maps", "table_of", "target", "watched",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hopscope.circuits' has no attribute {name!r}")
    return getattr(import_module(f"hopscope.circuits.{_HOME[name]}"), name)
