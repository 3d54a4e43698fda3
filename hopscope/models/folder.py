"""A model as a folder: `config.json` and `model.safetensors`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from hopscope.configs import Interface, Model
from hopscope.errors import ConfigError, ModelError
from hopscope.models.transformer import Transformer
from hopscope.store.files import read_bytes, write_bytes

FORMAT = 1
"""The version of the format of a model's folder."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"
NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""The kinds of number that weights may hold; torch knows others that it cannot compute with."""


def save(model: Transformer, folder: Path | str) -> None:
    """Write a single model; an existing folder's two files are replaced, each atomically."""
    if model.fleet:
        raise ModelError("got a fleet; save its members: model.member(i)")
    folder = Path(folder)
    config = {
        "format": FORMAT,
        "model": model.config.model_dump(mode="json"),
        "interface": model.interface.model_dump(mode="json"),
    }
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    write_bytes(folder / WEIGHTS, safetensors.torch.save(weights))
    write_bytes(folder / CONFIG, json.dumps(config, indent=2).encode())


def load(folder: Path | str) -> Transformer:
    """Read a model that `save` wrote."""
    folder = Path(folder)
    weights = _weights(folder / WEIGHTS)
    try:
        config = json.loads(read_bytes(folder / CONFIG))
        if config["format"] != FORMAT:
            raise ModelError(
                f"{folder}/{CONFIG} has format {config['format']}, expected {FORMAT}: "
                "upgrade hopscope"
            )
        shape = Model(**config["model"]), Interface(**config["interface"])
    except (KeyError, TypeError, ValueError, RecursionError, ConfigError) as error:
        raise ModelError(f"{folder}/{CONFIG} does not describe a model: {error}") from error
    return model_from(weights, *shape, f"{folder}/{WEIGHTS}")


def model_from(
    weights: Mapping[str, Tensor],
    config: Model,
    interface: Interface,
    source: str,
    seeds: Sequence[int] = (),
) -> Transformer:
    """The model (with seeds: the fleet) of this shape with these weights, if names and shapes fit.

    A shape may ask for more memory than there is, so it is compared on the meta device first.
    """
    other = "it belongs to a model of another shape"
    if config.layers > len(weights):  # each layer has several
        raise ModelError(f"{source} has not the weights of {config.layers:,} layers: {other}")
    try:
        with torch.device("meta"):
            model = Transformer(config, interface, seeds)
    except RuntimeError as error:
        raise ModelError(f"{source} belongs to a model of impossible size: {error}") from error
    own = model.state_dict()
    for name in own.keys() ^ weights.keys():
        where = "lacks" if name in own else "has unknown"
        raise ModelError(f"{source} {where} {name}: {other}")
    for name, tensor in own.items():
        got, expected = tuple(weights[name].shape), tuple(tensor.shape)
        if got != expected:
            raise ModelError(f"{source}: {name} is {got}, expected {expected}: {other}")
    model.to_empty(device="cpu").load_state_dict(weights)
    return model


def _weights(path: Path) -> dict[str, Tensor]:
    """The weights in a file, if all are numbers."""
    try:
        weights = safetensors.torch.load(read_bytes(path))
    except (SafetensorError, KeyError, ValueError) as error:  # KeyError: a kind torch does not know
        raise ModelError(f"{path} is not a safetensors file of weights: {error}") from error
    for name, tensor in weights.items():
        if tensor.dtype not in NUMBERS or not tensor.isfinite().all():
            raise ModelError(f"{path}: {name[:100]} holds what is not a number: write it anew")
    return weights
