"""The checkpoints of a run: which steps have one, and the names of its files.

The weights of every planned checkpoint are kept, to study how circuits emerge. The optimiser's
moments are twice as large and only needed to continue from the last step; only the newest are kept.
"""

import re
from collections.abc import Container

import numpy as np
from safetensors import SafetensorError, deserialize

from hopscope.errors import CircuitError, ConfigError, Diverged
from hopscope.store.folder import RunFolder

CHECKPOINTS = "checkpoints/"
STEPS = f"{CHECKPOINTS}step-"
OPTIMISER_FILES = f"{CHECKPOINTS}optimiser-"
SUFFIX = ".safetensors"
CHECKPOINT_NAME = re.compile(rf"{STEPS}(\d+){re.escape(SUFFIX)}", re.ASCII)
FLOATS = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}
"""The types of weights that are read, with the numpy type of their bytes."""


def checkpoint_name(step: int) -> str:
    """The file of the weights after a step."""
    return f"{STEPS}{step:08d}{SUFFIX}"


def checkpoint_steps(folder: RunFolder) -> list[int]:
    """The steps with a checkpoint, in order."""
    found = []
    for name in folder.files(STEPS):
        number = CHECKPOINT_NAME.fullmatch(name)
        if number is None:
            raise folder.damaged(f"{folder.name} names {name}, expected {STEPS}NUMBER{SUFFIX}")
        found.append(int(number[1]))
    return sorted(found)


def read_arrays(folder: RunFolder, name: str) -> dict[str, np.ndarray]:
    """Read the tensors of a run's file, those of 16 bits as float32.

    Raises RunDamaged unless all numbers are finite.
    """
    source = f"{folder.name}/{name}"
    try:
        views = deserialize(folder.read(name))  # type: ignore[no-untyped-call]
        arrays = {key: _array(**view) for key, view in views}
    except (SafetensorError, ValueError, RecursionError) as error:
        raise folder.damaged(f"{source} is not a checkpoint ({str(error)[:200]})") from error
    for key, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise folder.damaged(
                f"{source}: {key[:100]} contains NaN, infinity or a wrong type, which "
                "hopscope never writes"
            )
    return arrays


def _array(dtype: str, shape: list[int], data: bytearray) -> np.ndarray:
    """Return the numbers of a tensor; its bytes if hopscope does not compute with its type."""
    if dtype not in FLOATS:
        return np.frombuffer(data, np.uint8)
    array = np.frombuffer(data, FLOATS[dtype])
    if dtype == "BF16":  # the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if dtype == "F16":  # as the gallery stores weights
        array = array.astype(np.float32)
    return array.reshape(shape)


def optimiser_name(step: int) -> str:
    """The file of the optimiser's moments after a step."""
    return f"{OPTIMISER_FILES}{step:08d}{SUFFIX}"


def diverged(folder: RunFolder, what: str, remedy: str) -> Diverged:
    """Return the error for a training that diverged; it names the last checkpoint."""
    steps = checkpoint_steps(folder)
    last = f"{folder.path}/{checkpoint_name(steps[-1])}" if steps else "none"
    return Diverged(f"{what}; the last good checkpoint is {last}: {remedy}")


def outdated(folder: RunFolder, planned: Container[int]) -> tuple[str, ...]:
    """Return the files that the next commit removes: that of the last optimiser, and checkpoints
    of unplanned steps (left by interruptions).
    """
    unplanned = [step for step in checkpoint_steps(folder) if step not in planned]
    return (*folder.files(OPTIMISER_FILES), *map(checkpoint_name, unplanned))


def weights_step(folder: RunFolder) -> int:
    """Return the step of the last weights; for a run without checkpoints, its current step."""
    return max(checkpoint_steps(folder), default=folder.manifest.step)


def earlier_weights(folder: RunFolder) -> str:
    """Return a line if the last weights are from before the last step (in some gallery models)."""
    step, recipe = weights_step(folder), folder.recipe
    if step == recipe.steps:
        return ""
    return f"The weights are those of {recipe.unit} {step:,} of {recipe.steps:,}."


def chosen_step(folder: RunFolder, asked: int | None = None) -> int:
    """Return the step of a checkpoint: `asked`, or the last if None; raises if there is none."""
    steps = checkpoint_steps(folder)
    if not steps:
        raise CircuitError(f"{folder.name} has no checkpoint: `{folder.command('resume')}`")
    if asked is None:
        return steps[-1]
    if not isinstance(asked, int | np.integer):
        raise ConfigError(f"step is {asked!r}; expected a whole number")
    if asked not in steps:
        near = min(steps, key=lambda each: abs(each - asked))
        raise ConfigError(
            f"step is {asked}; {folder.name} has no checkpoint there, the nearest is {near}"
        )
    return asked
