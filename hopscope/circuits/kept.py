"""What is kept with a run of its circuits, found without torch: the circuit, and how it emerged.

A story whose circuit or steps are not those of the run any more counts as not there.
"""

import json

from hopscope.circuits.circuit import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps

EMERGENCE = "emergence.json"


def circuit_file(folder: RunFolder, seed: int) -> str:
    """Where the circuit of one model, in its last state, is kept."""
    fleet = len(folder.experiment.seeds) > 1
    return f"circuit-seed-{seed}.json" if fleet else "circuit.json"


def kept_circuit(folder: RunFolder, seed: int) -> Circuit | None:
    """The circuit that was found in it; None if none was yet."""
    name = circuit_file(folder, seed)
    if name not in folder.manifest.files:
        return None
    return Circuit.from_json(folder.read(name))


def kept_emergence(folder: RunFolder, circuit: Circuit | None) -> Emergence | None:
    """When the paths of its circuit emerged, if that is kept."""
    if circuit is None or EMERGENCE not in folder.manifest.files:
        return None
    found = Emergence.from_dict(json.loads(folder.read(EMERGENCE)))
    same = found.paths == circuit.paths and list(found.steps) == checkpoint_steps(folder)
    return found if same else None
