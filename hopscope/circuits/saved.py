"""What is kept with a run of its circuits, found without torch: the circuit, and how it emerged.

A story whose circuit or steps are not those of the run any more counts as not there.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import safetensors.numpy

from hopscope.circuits.circuit import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, chosen_step

EMERGENCE = "emergence.json"


def circuit_file(folder: RunFolder, seed: int, step: int | None = None) -> str:
    """Where the circuit of one model is kept: in its last state, or as it was after a step."""
    of = f"-seed-{seed}" if len(folder.recipe.seeds) > 1 else ""
    return f"circuit{of}{'' if step is None else f'-step-{step}'}.json"


def saved_circuit(folder: RunFolder, seed: int, step: int | None = None) -> Circuit | None:
    """The circuit that was found in it; None if none was yet."""
    name = circuit_file(folder, seed, step)
    if name not in folder.manifest.files:
        return None
    return Circuit.from_json(folder.read(name))


def checked_circuit(
    folder: RunFolder, seed: int, step: int | None = None, file: Path | None = None
) -> Circuit | None:
    """The circuit of a model's last state, or of its state after a step, from a file or as it was
    kept; None if none was. It is refused if it was found in other weights.
    """
    found = saved_circuit(folder, seed, step) if file is None else Circuit.load(file)
    if found is not None:
        found.check_model(checkpoint_digest(folder, chosen_step(folder, step), seed))
    return found


def checkpoint_digest(folder: RunFolder, step: int, seed: int) -> str:
    """The digest of one model's weights after a step: that of the circuits found in them
    (`hopscope.circuits.engine.weights_digest`).
    """
    seeds, found = folder.recipe.seeds, hashlib.sha256()
    weights = safetensors.numpy.load(folder.read(checkpoint_name(step)))
    for name, weight in sorted(weights.items()):
        own = weight[seeds.index(seed)] if len(seeds) > 1 else weight
        found.update(name.encode())
        found.update(np.ascontiguousarray(own, np.float32).tobytes())  # what is kept in halves, too
    return found.hexdigest()


def saved_emergence(folder: RunFolder, circuit: Circuit | None) -> Emergence | None:
    """When the paths of its circuit emerged, if that is kept."""
    if circuit is None or EMERGENCE not in folder.manifest.files:
        return None
    found = Emergence.from_dict(json.loads(folder.read(EMERGENCE)))
    same = found.paths == circuit.tracked and list(found.steps) == checkpoint_steps(folder)
    return found if same else None
