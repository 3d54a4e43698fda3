"""Files of tensors that say what they belong to: weights, and what only the next step needs.

Every planned checkpoint's weights are kept, to watch circuits emerge. The optimiser's moments are
twice as large and serve to go on from the last step alone, so only the newest are kept.
"""

import json
from collections.abc import Container
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from hopscope.configs import Config, Recipe
from hopscope.errors import ConfigError, RunDamaged, RunMismatch, RunTooNew
from hopscope.models.folder import NUMBERS
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps

FORMAT = 1
"""The version of the format of checkpoints."""
META = "hopscope"  # one key: the order of several would change from process to process
OPTIMISERS = "checkpoints/optimiser-"


class About(Config):
    """What a file of tensors belongs to."""

    format: int
    experiment: str
    """The digest of its run's recipe."""
    step: int
    precision: str


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


def saved(state: dict[str, Tensor], recipe: str, step: int, precision: str) -> bytes:
    """A file of tensors that says what it belongs to; `recipe` is a digest."""
    meta = {"format": FORMAT, "experiment": recipe, "step": step, "precision": precision}
    words = {META: json.dumps(meta, sort_keys=True)}
    return safetensors.torch.save({k: t.detach().cpu() for k, t in state.items()}, words)


def relabelled(data: bytes, source: str, recipe: Recipe) -> bytes:
    """The same state as a file of another recipe's run."""
    state, about = read_tensors(data, source)
    return saved(state, recipe.digest(), about.step, about.precision)


def weights_of(data: bytes, source: str) -> dict[str, Tensor]:
    """The weights in a checkpoint's file."""
    return read_tensors(data, source)[0]


def own_weights(folder: RunFolder, step: int) -> dict[str, Tensor]:
    """The weights of one of the run's checkpoints, which must be of this run."""
    name = checkpoint_name(step)
    weights, meta = read_tensors(folder.read(name), f"{folder.name}/{name}")
    check_recipe(meta, folder.recipe.digest(), f"{folder.name}/{name}")
    return weights


def check_recipe(about: About, digest: str, source: str) -> None:
    """Refuse a file of another recipe's run."""
    if about.experiment != digest:
        raise RunMismatch(
            f"{source} belongs to recipe {about.experiment[:10]}, expected "
            f"{digest[:10]}: it was copied from another run"
        )


def check_named(about: About, name: str) -> None:
    """Refuse a file whose name tells another step than it does itself."""
    if checkpoint_name(about.step) != name:
        raise RunMismatch(
            f"{name} is of step {about.step}: it was renamed, or copied from elsewhere"
        )


def read_tensors(data: bytes, source: str) -> tuple[dict[str, Tensor], About]:
    """The tensors of a file, and what it says of itself."""
    try:
        state = {name: _computed(t) for name, t in safetensors.torch.load(data).items()}
        about = _about(data, source)
    except (SafetensorError, ConfigError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunDamaged(f"{source} is not a checkpoint ({str(error)[:200]})") from error
    for name, tensor in state.items():
        if tensor.dtype not in NUMBERS or not tensor.isfinite().all():
            raise RunDamaged(
                f"{source}: {name[:100]} holds what is not a number; no training of hopscope "
                "writes that: restore the file from a copy"
            )
    return state, about


def _about(data: bytes, source: str) -> About:
    """What the file says of itself, in the metadata of safetensors."""
    size = int.from_bytes(data[:8], "little")
    said: dict[str, Any] = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][META])
    version = said["format"]
    if isinstance(version, int) and version > FORMAT:
        raise RunTooNew(f"{source} has format {version}; this hopscope reads up to {FORMAT}")
    return About(**said)


def _computed(tensor: Tensor) -> Tensor:
    """Half precision is for keeping alone (the gallery does); float32 computes."""
    return tensor.float() if tensor.dtype == torch.float16 else tensor
