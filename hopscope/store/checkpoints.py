"""The checkpoints of a run: which steps have one, and the names of its files.

The weights of every planned checkpoint are kept, to study how circuits emerge. The optimiser's
moments are twice as large and only needed to continue from the last step; only the newest are kept.
"""

import re
from collections.abc import Container

import numpy as np

from hopscope.errors import CircuitError, ConfigError, Diverged
from hopscope.store.folder import RunFolder

CHECKPOINTS = "checkpoints/"
STEPS = f"{CHECKPOINTS}step-"
OPTIMISERS = f"{CHECKPOINTS}optimiser-"
SUFFIX = ".safetensors"
NUMBERED = re.compile(rf"{STEPS}(\d+){re.escape(SUFFIX)}", re.ASCII)


def checkpoint_name(step: int) -> str:
    """The file of the weights after a step."""
    return f"{STEPS}{step:08d}{SUFFIX}"


def checkpoint_steps(folder: RunFolder) -> list[int]:
    """The steps with a checkpoint, in order."""
    found = []
    for name in folder.files(STEPS):
        number = NUMBERED.fullmatch(name)
        if number is None:
            raise folder.damaged(f"{folder.name} names {name}, expected {STEPS}NUMBER{SUFFIX}")
        found.append(int(number[1]))
    return sorted(found)


def optimiser_name(step: int) -> str:
    """The file of the optimiser's moments after a step."""
    return f"{OPTIMISERS}{step:08d}{SUFFIX}"


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
    return (*folder.files(OPTIMISERS), *map(checkpoint_name, unplanned))


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
