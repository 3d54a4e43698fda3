"""A checkpoint: a file of weights, and a file of what only the next step needs.

Every checkpoint's weights are kept, to watch circuits emerge. The optimiser's moments are twice
as large and serve to go on from the last step alone, so only the newest are kept.
"""

import json
import re
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from hopscope.configs import Config, Experiment
from hopscope.errors import ConfigError, RunDamaged, RunMismatch, RunTooNew
from hopscope.store import RunFolder
from hopscope.training.learner import Learner

FORMAT = 1
META = "hopscope"  # one key: the order of several would change from process to process
STEPS, OPTIMISERS = "checkpoints/step-", "checkpoints/optimiser-"
SUFFIX = ".safetensors"
NUMBERED = re.compile(rf"{STEPS}(\d+){re.escape(SUFFIX)}", re.ASCII)


class About(Config):
    """What a file of tensors belongs to."""

    format: int
    experiment: str
    """The digest of its run's recipe."""
    step: int
    precision: str


def checkpoint_name(step: int) -> str:
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


def pack(learner: Learner) -> dict[str, bytes]:
    """The files of the learner's present state."""
    about = (learner.experiment.digest(), learner.step, learner.precision)
    optimiser = f"{OPTIMISERS}{learner.step:08d}{SUFFIX}"
    parts = {
        checkpoint_name(learner.step): learner.weights.named(),
        optimiser: learner.optimiser_state(),
    }
    return {name: saved(state, *about) for name, state in parts.items()}


def saved(state: dict[str, Tensor], experiment: str, step: int, precision: str) -> bytes:
    """A file of tensors that says what it belongs to."""
    meta = {"format": FORMAT, "experiment": experiment, "step": step, "precision": precision}
    words = {META: json.dumps(meta, sort_keys=True)}
    return safetensors.torch.save({k: t.detach().cpu() for k, t in state.items()}, words)


def relabelled(data: bytes, source: str, experiment: Experiment) -> bytes:
    """The same state as a file of another experiment."""
    state, about = _read(data, source)
    return saved(state, experiment.digest(), about.step, about.precision)


def unpack(learner: Learner, folder: RunFolder) -> None:
    """Put the learner into the last state that was committed, if there is one."""
    for optimiser in folder.files(OPTIMISERS):
        name = optimiser.replace(OPTIMISERS, STEPS)
        weights, meta = _read(folder.read(name), f"{folder.name}/{name}")
        moments, its_meta = _read(folder.read(optimiser), f"{folder.name}/{optimiser}")
        for source, found in ((name, meta), (optimiser, its_meta)):
            _check_meta(found, learner, f"{folder.name}/{source}")
        _check_shapes(weights, learner.weights.named(), f"{folder.name}/{name}")
        _check_shapes(moments, learner.optimiser_state(), f"{folder.name}/{optimiser}")
        _check_step(meta, name)
        learner.restore(weights, moments, meta.step)


def weights_of(data: bytes, source: str) -> dict[str, Tensor]:
    """The weights in a checkpoint's file."""
    return _read(data, source)[0]


def own_weights(folder: RunFolder, step: int) -> dict[str, Tensor]:
    """The weights of one of the run's checkpoints, which must be of this run."""
    name = checkpoint_name(step)
    weights, meta = _read(folder.read(name), f"{folder.name}/{name}")
    _check_experiment(meta, folder.experiment.digest(), f"{folder.name}/{name}")
    return weights


def _check_experiment(about: About, digest: str, source: str) -> None:
    if about.experiment != digest:
        raise RunMismatch(
            f"{source} belongs to experiment {about.experiment[:10]}, expected "
            f"{digest[:10]}: it was copied from another run"
        )


def _check_step(about: About, name: str) -> None:
    if checkpoint_name(about.step) != name:
        raise RunMismatch(
            f"{name} is of step {about.step}: it was renamed, or copied from elsewhere"
        )


def _check_meta(about: About, learner: Learner, source: str) -> None:
    _check_experiment(about, learner.experiment.digest(), source)
    if about.precision != learner.precision:
        raise RunMismatch(
            f"{source} was trained in {about.precision[:20]}, but this machine computes in "
            f"{learner.precision}: resume on the machine it came from, or train a run whose "
            f"training.precision is {about.precision[:20]}"
        )


def _read(data: bytes, source: str) -> tuple[dict[str, Tensor], About]:
    try:
        state = {name: _computed(t) for name, t in safetensors.torch.load(data).items()}
        about = _about(data, source)
    except (SafetensorError, ConfigError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunDamaged(f"{source} is not a checkpoint ({str(error)[:200]})") from error
    for name, tensor in state.items():
        if not tensor.is_floating_point() or not tensor.isfinite().all():
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


def _check_shapes(state: dict[str, Tensor], own: dict[str, Tensor], source: str) -> None:
    for name, tensor in own.items():
        got = state.get(name, torch.empty(0)).shape
        if got != tensor.shape:
            raise RunMismatch(f"{source}: {name} is {tuple(got)}, expected {tuple(tensor.shape)}")
