"""A checkpoint: weights, optimiser and counters as one safetensors file."""

import json
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from hopscope.errors import RunDamaged, RunMismatch, RunTooNew
from hopscope.training.learner import Learner

FORMAT = 1
META = "hopscope"  # one key: the order of several would change from process to process
FOLDER = "checkpoints/"


def checkpoint_name(step: int) -> str:
    return f"{FOLDER}step-{step:08d}.safetensors"


def checkpoint_step(name: str) -> int:
    return int(name.removeprefix(f"{FOLDER}step-").removesuffix(".safetensors"))


def pack(learner: Learner) -> bytes:
    """The learner's state after its present step."""
    meta = {
        "format": FORMAT,
        "experiment": learner.experiment.digest(),
        "step": learner.step,
        "precision": learner.precision,
    }
    state = {name: tensor.detach().cpu() for name, tensor in learner.state().items()}
    return safetensors.torch.save(state, {META: json.dumps(meta, sort_keys=True)})


def unpack(learner: Learner, data: bytes, source: str) -> None:
    """Put the learner into the packed state; it must come from the same experiment."""
    state, meta = _read(data, source)
    if meta["experiment"] != learner.experiment.digest():
        raise RunMismatch(
            f"{source} belongs to experiment {meta['experiment'][:10]}, expected "
            f"{learner.experiment.digest()[:10]}: it was copied from another run"
        )
    if meta["precision"] != learner.precision:
        raise RunMismatch(
            f"{source} was trained in {meta['precision']}, but this machine computes in "
            f"{learner.precision}: resume on the machine it came from, or train a run whose "
            f"training.precision is {meta['precision']}"
        )
    _check_shapes(state, learner, source)
    learner.restore(state, meta["step"])


def weights_of(data: bytes, source: str) -> dict[str, Tensor]:
    """The model's weights alone."""
    state, _ = _read(data, source)
    return {name: t for name, t in state.items() if not name.startswith("optimiser.")}


def _read(data: bytes, source: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        state = safetensors.torch.load(data)
        size = int.from_bytes(data[:8], "little")
        meta = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][META])
        version = meta["format"]
    except (SafetensorError, ValueError, KeyError) as error:
        raise RunDamaged(f"{source} is not a checkpoint ({error})") from error
    if version > FORMAT:
        raise RunTooNew(f"{source} has format {version}; this hopscope reads up to {FORMAT}")
    return state, meta


def _check_shapes(state: dict[str, Tensor], learner: Learner, source: str) -> None:
    for name, own in learner.state().items():
        got = state.get(name, torch.empty(0)).shape
        if got != own.shape:
            raise RunMismatch(f"{source}: {name} is {tuple(got)}, expected {tuple(own.shape)}")
