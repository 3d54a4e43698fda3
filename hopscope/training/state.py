"""A learner's state as the files of a checkpoint, and back."""

import torch
from torch import Tensor

from hopscope.errors import RunMismatch
from hopscope.runs.checkpoint import (
    OPTIMISERS,
    About,
    check_named,
    check_recipe,
    read_tensors,
    saved,
)
from hopscope.store import RunFolder
from hopscope.store.checkpoints import STEPS, SUFFIX, checkpoint_name
from hopscope.training.learner import Learner


def pack(learner: Learner) -> dict[str, bytes]:
    """The files of the learner's present state."""
    about = (learner.experiment.digest(), learner.step, learner.precision)
    optimiser = f"{OPTIMISERS}{learner.step:08d}{SUFFIX}"
    parts = {
        checkpoint_name(learner.step): learner.weights.named(),
        optimiser: learner.optimiser_state(),
    }
    return {name: saved(state, *about) for name, state in parts.items()}


def unpack(learner: Learner, folder: RunFolder) -> None:
    """Put the learner into the last state that was committed, if there is one."""
    for optimiser in folder.files(OPTIMISERS):
        name = optimiser.replace(OPTIMISERS, STEPS)
        weights, meta = read_tensors(folder.read(name), f"{folder.name}/{name}")
        moments, its_meta = read_tensors(folder.read(optimiser), f"{folder.name}/{optimiser}")
        for source, found in ((name, meta), (optimiser, its_meta)):
            _check_meta(found, learner, f"{folder.name}/{source}")
        _check_shapes(weights, learner.weights.named(), f"{folder.name}/{name}")
        _check_shapes(moments, learner.optimiser_state(), f"{folder.name}/{optimiser}")
        check_named(meta, name)
        learner.restore(weights, moments, meta.step)


def _check_meta(about: About, learner: Learner, source: str) -> None:
    check_recipe(about, learner.experiment.digest(), source)
    if about.precision != learner.precision:
        raise RunMismatch(
            f"{source} was trained in {about.precision[:20]}, but this machine computes in "
            f"{learner.precision}: resume on the machine it came from, or train a run whose "
            f"training.precision is {about.precision[:20]}"
        )


def _check_shapes(state: dict[str, Tensor], own: dict[str, Tensor], source: str) -> None:
    for name, tensor in own.items():
        got = state.get(name, torch.empty(0)).shape
        if got != tensor.shape:
            raise RunMismatch(f"{source}: {name} is {tuple(got)}, expected {tuple(tensor.shape)}")
