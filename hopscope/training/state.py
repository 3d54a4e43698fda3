"""A trainer's state as the files of a checkpoint, and back."""

from collections.abc import Mapping

from torch import Tensor

from hopscope.errors import RunMismatch
from hopscope.runs.checkpoint import read_tensors, to_safetensors, weights_at
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, optimiser_name
from hopscope.training.learner import Learner


def pack(learner: Learner) -> dict[str, bytes]:
    """The files of the learner's present state."""
    return {
        checkpoint_name(learner.step): to_safetensors(learner.weights.named()),
        optimiser_name(learner.step): to_safetensors(learner.optimiser.state()),
    }


def unpack(learner: Learner, folder: RunFolder) -> None:
    """Put the learner into the last state that was committed, if there is one."""
    for step in checkpoint_steps(folder)[-1:]:
        _check_precision(learner, folder)
        weights, moments = weights_at(folder, step), read_tensors(folder, optimiser_name(step))
        _check_shapes(weights, learner.weights.named(), f"{folder.name}/{checkpoint_name(step)}")
        _check_shapes(moments, learner.optimiser.state(), f"{folder.name}/{optimiser_name(step)}")
        learner.restore(weights, moments, step)


def _check_precision(learner: Learner, folder: RunFolder) -> None:
    began = folder.manifest.precision
    if began != learner.precision:
        raise RunMismatch(
            f"{folder.name} was trained in {began[:20]}, but this machine computes in "
            f"{learner.precision}: resume on the machine it came from, or train a run whose "
            f"training.precision is {began[:20]}"
        )


def _check_shapes(state: Mapping[str, Tensor], own: Mapping[str, Tensor], source: str) -> None:
    for name, tensor in own.items():
        got = tuple(state[name].shape) if name in state else "missing"
        if got != tuple(tensor.shape):
            raise RunMismatch(f"{source}: {name} is {got}, expected {tuple(tensor.shape)}")
