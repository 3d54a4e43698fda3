"""Which steps of a run have a checkpoint, and what its file is called."""

import re
from collections.abc import Sequence

from hopscope.errors import ConfigError, RunDamaged
from hopscope.store.folder import RunFolder

CHECKPOINTS = "checkpoints/"
STEPS = f"{CHECKPOINTS}step-"
SUFFIX = ".safetensors"
NUMBERED = re.compile(rf"{STEPS}(\d+){re.escape(SUFFIX)}", re.ASCII)


def checkpoint_name(step: int) -> str:
    """The file of the weights after a step."""
    return f"{STEPS}{step:08d}{SUFFIX}"


def checkpoint_steps(folder: RunFolder) -> list[int]:
    """The steps of which the weights are kept, in order."""
    found = []
    for name in folder.files(STEPS):
        number = NUMBERED.fullmatch(name)
        if number is None:
            raise RunDamaged(
                f"{folder.name} names {name}, expected {STEPS}NUMBER{SUFFIX}: restore the run "
                f"from a copy, or `hopscope rm {folder.name}`"
            )
        found.append(int(number[1]))
    return sorted(found)


def check_step(step: int, known: Sequence[int], name: str) -> None:
    """Refuse a step after which no weights were kept."""
    if known and step not in known:
        near = min(known, key=lambda each: abs(each - step))
        raise ConfigError(f"step is {step}; {name} has no checkpoint there, the nearest is {near}")
