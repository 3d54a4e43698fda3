"""Read the circuits and the emergence that are saved with a run, without torch.

A saved emergence is ignored if its paths are not those of the circuit, or its steps not those of
the run's checkpoints.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from hopscope.circuits.circuit import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, chosen_step, read_arrays

EMERGENCE = "emergence.json"


def circuit_file(folder: RunFolder, seed: int, step: int | None = None) -> str:
    """The name of the file with a model's circuit, at the last checkpoint or at `step`."""
    of = f"-seed-{seed}" if len(folder.recipe.seeds) > 1 else ""
    return f"circuit{of}{'' if step is None else f'-step-{step}'}.json"


def saved_circuit(folder: RunFolder, seed: int, step: int | None = None) -> Circuit | None:
    """The saved circuit of a model, at the last checkpoint or at `step`; None if there is none."""
    name = circuit_file(folder, seed, step)
    if name not in folder.manifest.files:
        return None
    return Circuit.from_json(folder.read(name))


def checked_circuit(
    folder: RunFolder, seed: int, step: int | None = None, file: Path | None = None
) -> Circuit | None:
    """The circuit of a model at the last checkpoint or at `step`, from `file` or as saved with the
    run; None if there is none. Raises CircuitError if it was found in other weights.
    """
    found = saved_circuit(folder, seed, step) if file is None else Circuit.load(file)
    if found is not None:
        found.check_model(checkpoint_digest(folder, chosen_step(folder, step), seed))
    return found


def checkpoint_digest(folder: RunFolder, step: int, seed: int) -> str:
    """The digest of one model's weights at a step, as `hopscope.circuits.engine.weights_digest`
    computes it.
    """
    seeds, found = folder.recipe.seeds, hashlib.sha256()
    for name, weight in sorted(read_arrays(folder, checkpoint_name(step)).items()):
        if len(seeds) > 1 and weight.shape[:1] != (len(seeds),):
            raise folder.damaged(f"{folder.name}/{checkpoint_name(step)} is not of its fleet")
        own = weight[seeds.index(seed)] if len(seeds) > 1 else weight
        found.update(name.encode())
        with np.errstate(over="ignore"):  # float64 may be too large
            found.update(np.ascontiguousarray(own, np.float32).tobytes())
    return found.hexdigest()


def saved_emergence(folder: RunFolder, circuit: Circuit | None) -> Emergence | None:
    """The saved emergence of the circuit's paths; None if there is none for this circuit."""
    if circuit is None or EMERGENCE not in folder.manifest.files:
        return None
    found = Emergence.from_dict(json.loads(folder.read(EMERGENCE)))
    same = found.paths == circuit.tracked and list(found.steps) == checkpoint_steps(folder)
    return found if same else None
