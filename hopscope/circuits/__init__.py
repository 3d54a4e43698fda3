"""Circuits: read the heads, prove what they do, watch it emerge. Knows no training."""

from hopscope.circuits.ablation import Ablation, Carried
from hopscope.circuits.adapters import subject_of
from hopscope.circuits.bench import Bench
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.discovery import discover
from hopscope.circuits.maps import RoleMaps, attention_maps, patterns, role_maps
from hopscope.circuits.mechanism import Aim, Mechanism, Target, aim
from hopscope.circuits.probe import Probe, probe_of
from hopscope.circuits.subject import Subject, Whole

__all__ = [
    "Ablation",
    "Aim",
    "Bench",
    "Carried",
    "Circuit",
    "Mechanism",
    "Probe",
    "RoleMaps",
    "Subject",
    "Target",
    "Whole",
    "aim",
    "attention_maps",
    "discover",
    "patterns",
    "probe_of",
    "role_maps",
    "subject_of",
]
