"""What travels with a run for the page: role maps of all checkpoints, emergence, contents, truth.

The models of the gallery carry these files, so that nothing is computed for the first view;
`benchmarks/gallery.py --explorer` makes them. A file whose circuit or steps are not those of the
run any more counts as not there.
"""

import json
from typing import Any

from hopscope.circuits.circuit import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.web.tensors import unpacked

MAPS, CONTENTS = "explorer/maps.safetensors", "explorer/contents.safetensors"
EMERGENCE, PLANTED = "emergence.json", "planted.json"


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


def kept_arrays(folder: RunFolder, name: str, seed: int) -> bytes | None:
    """A file of arrays over all checkpoints, if it is kept."""
    if name not in folder.manifest.files or seed != folder.experiment.seeds[0]:
        return None
    data = folder.read(name)
    arrays, _ = unpacked(data)
    return data if arrays["steps"].tolist() == checkpoint_steps(folder) else None


def kept_truth(folder: RunFolder) -> list[dict[str, Any]] | None:
    """The paths of a circuit that was written by hand, if this is one."""
    if PLANTED not in folder.manifest.files:
        return None
    found: list[dict[str, Any]] = json.loads(folder.read(PLANTED))
    return found
