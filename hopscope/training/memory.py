"""What a training takes, from its config alone, so that what cannot fit is refused at once.

A rough count of the largest tensors, from the shapes of the model; within a factor of two of what
was measured. Nothing is built for it.
"""

import torch

from hopscope.configs import Experiment
from hopscope.errors import ConfigError
from hopscope.machine import memory_bytes
from hopscope.training.precision import precision_of

STATE = 20
"""Bytes of each parameter: master, gradient, two moments, and a copy to compute with."""
PACKED = 24
"""Bytes more while a checkpoint is written: weights and moments, each twice."""
CPU = torch.device("cpu")
GiB = 2**30


def parameters(experiment: Experiment) -> int:
    """Weights of one model, biases and norms left out."""
    model, ends = experiment.model, experiment.task.interface()
    block = 4 * model.d_model * model.heads * model.head_width
    if model.mlp:
        block += 2 * model.d_model * model.mlp_width
    rows = ends.inputs + ends.outputs + (ends.length if ends.tokens else 0)
    return model.layers * block + rows * model.d_model


def training_bytes(experiment: Experiment, device: torch.device = CPU) -> int:
    """The most that a training holds at once in the memory of its device."""
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
    weights = parameters(experiment)
    packed = PACKED * weights if device == CPU else 0
    return models * (STATE * weights + max(packed, activations) + drawn)


def examples_bytes(experiment: Experiment, examples: int) -> int:
    """What one forward pass over so many examples holds at least: inputs, and one layer."""
    model, ends = experiment.model, experiment.task.interface()
    layer = 3 * model.heads * (model.head_width + ends.length) + model.d_model
    return 4 * examples * ends.length * (layer + ends.numbers)


def check_training(experiment: Experiment, device: torch.device = CPU) -> None:
    """Refuse what this device or its machine cannot hold, before there is a run."""
    training, models = experiment.training, len(experiment.seeds)
    what = (
        f"training {models if models > 1 else 'a'} model{'s' * (models > 1)} of "
        f"{parameters(experiment):,} weights on {training.batch:,} examples of "
        f"{experiment.task.interface().length:,} positions a step"
    )
    remedy = "take a smaller model, batch, chain or fleet"
    if device.type == "cuda":
        gpu = torch.cuda.mem_get_info(device)[1]
        _check(what, training_bytes(experiment, device), remedy, gpu, "this GPU")
        _check(what, models * PACKED * parameters(experiment), remedy)
    else:
        _check(what, training_bytes(experiment), remedy)


def check_examples(experiment: Experiment, examples: int) -> None:
    """Refuse to examine a model on more examples than this machine can hold."""
    what = f"{examples:,} examples of {experiment.task.interface().length:,} positions"
    _check(what, examples_bytes(experiment, examples), "take fewer examples")


def _check(
    what: str, needed: int, remedy: str, memory: int | None = None, where: str = "this machine"
) -> None:
    memory = memory or memory_bytes()
    if needed > memory:
        raise ConfigError(
            f"{what} would take about {needed / GiB:,.0f} GiB, and {where} has "
            f"{memory / GiB:,.0f}: {remedy}"
        )
