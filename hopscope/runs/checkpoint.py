"""Checkpoints as files of tensors. The run's manifest holds their checksums."""

from collections.abc import Mapping

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name

NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Allowed dtypes of weights; torch has other float types that it cannot compute with."""


def to_safetensors(state: Mapping[str, Tensor]) -> bytes:
    """The bytes of a file with these tensors."""
    return safetensors.torch.save({name: t.detach().cpu() for name, t in state.items()})


def weights_at(folder: RunFolder, step: int) -> dict[str, Tensor]:
    """The weights of one of the run's checkpoints."""
    return read_tensors(folder, checkpoint_name(step))


def read_tensors(folder: RunFolder, name: str) -> dict[str, Tensor]:
    """Read the tensors of a run's file; raises RunDamaged unless all numbers are finite."""
    source = f"{folder.name}/{name}"
    try:
        state = safetensors.torch.load(folder.read(name))
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise folder.damaged(f"{source} is not a checkpoint ({str(error)[:200]})") from error
    for key, tensor in state.items():
        if tensor.dtype not in NUMBERS or not tensor.isfinite().all():
            raise folder.damaged(
                f"{source}: {key[:100]} contains NaN, infinity or a wrong type, which "
                "hopscope never writes"
            )
    # The gallery stores float16, but computes in float32.
    return {key: t.float() if t.dtype == torch.float16 else t for key, t in state.items()}
