"""Checkpoints as files of tensors. The run's manifest holds their checksums."""

from collections.abc import Mapping

import safetensors.torch
import torch
from torch import Tensor

from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name, read_arrays


def to_safetensors(state: Mapping[str, Tensor]) -> bytes:
    """The bytes of a file with these tensors."""
    return safetensors.torch.save({name: t.detach().cpu() for name, t in state.items()})


def weights_at(folder: RunFolder, step: int) -> dict[str, Tensor]:
    """The weights of one of the run's checkpoints."""
    return read_tensors(folder, checkpoint_name(step))


def read_tensors(folder: RunFolder, name: str) -> dict[str, Tensor]:
    """Read the tensors of a run's file; see `hopscope.store.checkpoints.read_arrays`."""
    return {key: torch.from_numpy(each) for key, each in read_arrays(folder, name).items()}
