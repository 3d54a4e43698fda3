"""Checkpoints: files of tensors, by step.

Every planned checkpoint's weights are kept, to watch circuits emerge. The optimiser's moments are
twice as large and serve to go on from the last step alone, so only the newest are kept. Which run a
file belongs to, and that it is whole, its manifest says.
"""

from collections.abc import Container, Mapping

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from hopscope.errors import RunDamaged
from hopscope.models.folder import NUMBERS
from hopscope.store import RunFolder
from hopscope.store.checkpoints import SUFFIX, checkpoint_name, checkpoint_steps

OPTIMISERS = "checkpoints/optimiser-"


def optimiser_name(step: int) -> str:
    """The file of what the optimiser keeps after a step."""
    return f"{OPTIMISERS}{step:08d}{SUFFIX}"


def last_good(folder: RunFolder) -> str:
    """Where the last checkpoint is, for messages."""
    steps = checkpoint_steps(folder)
    return f"{folder.path}/{checkpoint_name(steps[-1])}" if steps else "none"


def outdated(folder: RunFolder, planned: Container[int]) -> tuple[str, ...]:
    """What the next commit replaces: the last optimiser, and checkpoints that an interruption left
    between planned ones.
    """
    unplanned = [step for step in checkpoint_steps(folder) if step not in planned]
    return (*folder.files(OPTIMISERS), *map(checkpoint_name, unplanned))


def to_safetensors(state: Mapping[str, Tensor]) -> bytes:
    """A file of these tensors."""
    return safetensors.torch.save({name: t.detach().cpu() for name, t in state.items()})


def weights_at(folder: RunFolder, step: int) -> dict[str, Tensor]:
    """The weights of one of the run's checkpoints."""
    return read_tensors(folder, checkpoint_name(step))


def read_tensors(folder: RunFolder, name: str) -> dict[str, Tensor]:
    """The tensors in a file of the run: numbers, and nothing but numbers."""
    source = f"{folder.name}/{name}"
    try:
        state = {key: _computed(t) for key, t in safetensors.torch.load(folder.read(name)).items()}
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunDamaged(f"{source} is not a checkpoint ({str(error)[:200]})") from error
    for key, tensor in state.items():
        if tensor.dtype not in NUMBERS or not tensor.isfinite().all():
            raise RunDamaged(
                f"{source}: {key[:100]} holds what is not a number; no training of hopscope "
                "writes that: restore the file from a copy"
            )
    return state


def _computed(tensor: Tensor) -> Tensor:
    """Half precision is for keeping alone (the gallery does); float32 computes."""
    return tensor.float() if tensor.dtype == torch.float16 else tensor
