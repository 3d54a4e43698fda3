"""The device of a training, its precision, and a check that the training fits into memory.

The memory is estimated from the config, by the sizes of the largest tensors. Estimates are within a
factor of two of measurements.
"""

import re

import torch

from hopscope.configs import Experiment, Training
from hopscope.errors import ConfigError
from hopscope.machine import memory_bytes
from hopscope.models.native import OLDEST_GPU
from hopscope.models.torch_private import processor_has

DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16}
STATE = 20
"""Bytes per parameter: master, gradient, two moments, and a copy for computing."""
PACKED_FLEET = 24
"""Additional bytes per parameter while a checkpoint is written: weights and moments, both twice."""
CPU = torch.device("cpu")
GiB = 2**30


def device_of(name: str) -> torch.device:
    """The device of this name; `auto` is the GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    match = re.fullmatch(r"cpu|cuda(?::(\d{1,9}))?", name, re.ASCII)
    if match is None:
        raise ConfigError(f"device is {name!r}; expected auto, cpu, cuda or cuda:N")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name != "cpu" and int(match[1] or 0) >= gpus:
        there = ", ".join(f"cuda:{number}" for number in range(gpus)) or "no GPU"
        raise ConfigError(
            f"device is {name!r}, but torch sees {there}: use "
            f"{'one of these, or ' if gpus else ''}--device cpu"
        )
    return torch.device(name)


def precision_of(training: Training, device: torch.device) -> str:
    """The precision of a training, float32 or bf16; `auto` is bf16 if the device has native bf16
    products.
    """
    if training.precision != "auto":
        return training.precision
    if device.type == "cuda":
        native = torch.cuda.get_device_capability(device) >= OLDEST_GPU
    else:
        native = processor_has("avx512_bf16") or processor_has("amx_tile")
    return "bf16" if native else "float32"  # emulated bf16 is slower than float32


def weight_count(experiment: Experiment) -> int:
    """The number of weights of one model, without biases and norms."""
    model, ends = experiment.model, experiment.task.interface()
    block = 4 * model.d_model * model.heads * model.head_width
    if model.mlp:
        block += 2 * model.d_model * model.mlp_width
    rows = ends.inputs + ends.outputs + (ends.length if ends.tokens else 0)
    return model.layers * block + rows * model.d_model


def training_bytes(experiment: Experiment, device: torch.device = CPU) -> int:
    """The peak memory of a training on its device, in bytes."""
    model, training = experiment.model, experiment.training
    ends, models = experiment.task.interface(), len(experiment.seeds)
    number = 4 if precision_of(training, device) == "float32" else 2
    kept = 6 * model.d_model + 5 * model.heads * model.head_width + 2 * ends.numbers
    if model.mlp:
        kept += 4 * model.mlp_width
    seen = 3 * model.heads * ends.length
    layer = number * ends.length * (kept + seen)
    activations = layer * max(training.batch * model.layers, training.validation_examples)
    example = 48 * ends.numbers * ends.length + 12 * ends.read * ends.outputs
    drawn = example * (training.batch + training.validation_examples)
    weights = weight_count(experiment)
    packed = PACKED_FLEET * weights if device == CPU else 0
    return models * (STATE * weights + max(packed, activations) + drawn)


def check_training(experiment: Experiment, device: torch.device = CPU) -> None:
    """Raise ConfigError if a training does not fit into the memory of the device or the machine."""
    training, models = experiment.training, len(experiment.seeds)
    what = (
        f"training {models if models > 1 else 'a'} model{'s' * (models > 1)} of "
        f"{weight_count(experiment):,} weights on {training.batch:,} examples of "
        f"{experiment.task.interface().length:,} positions a step"
    )
    remedy = "take a smaller model, batch, chain or fleet"
    if training.validation_examples > training.batch * experiment.model.layers:
        remedy += ", or fewer validation_examples"
    if device.type == "cuda":
        gpu = torch.cuda.mem_get_info(device)[1]
        _check(what, training_bytes(experiment, device), remedy, gpu, "this GPU")
        _check(what, models * PACKED_FLEET * weight_count(experiment), remedy)
    else:
        _check(what, training_bytes(experiment), remedy)


def _check(
    what: str, needed: int, remedy: str, memory: int | None = None, where: str = "this machine"
) -> None:
    memory = memory or memory_bytes()
    if needed > memory:
        raise ConfigError(
            f"{what} would take about {needed / GiB:,.0f} GiB, and {where} has "
            f"{memory / GiB:,.0f}: {remedy}"
        )
