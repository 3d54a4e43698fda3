"""A model as a folder: `config.json` and `model.safetensors`."""

import json
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from hopscope.configs import Interface, Model
from hopscope.errors import ConfigError, ModelError
from hopscope.models.transformer import Transformer
from hopscope.store.files import read_bytes, write_bytes

FORMAT = 1
"""The version of the format of a model's folder."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save(model: Transformer, folder: Path | str) -> None:
    """Write a single model; an existing folder's two files are replaced, each atomically."""
    if model.fleet:
        raise ModelError("a fleet was to be saved; save its members: model.member(i)")
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
    try:
        config = json.loads(read_bytes(folder / CONFIG))
        if config["format"] != FORMAT:
            raise ModelError(
                f"{folder}/{CONFIG} has format {config['format']}, expected {FORMAT}: "
                "upgrade hopscope"
            )
        model = Transformer(Model(**config["model"]), Interface(**config["interface"]))
    except (KeyError, TypeError, json.JSONDecodeError, ConfigError) as error:
        raise ModelError(f"{folder}/{CONFIG} does not describe a model: {error}") from error
    try:
        weights = safetensors.torch.load(read_bytes(folder / WEIGHTS))
    except SafetensorError as error:
        raise ModelError(f"{folder}/{WEIGHTS} is not a safetensors file: {error}") from error
    load_weights(model, weights, f"{folder}/{WEIGHTS}")
    return model


def load_weights(model: Transformer, weights: dict[str, Tensor], source: str) -> None:
    """Fill the model with weights of exactly its names and shapes."""
    own = model.state_dict()
    for name in own.keys() ^ weights.keys():
        where = "lacks" if name in own else "has unknown"
        raise ModelError(f"{source} {where} {name}: it belongs to a model of another shape")
    for name, tensor in own.items():
        got = weights[name]
        if got.shape != tensor.shape:
            shapes = f"{tuple(got.shape)}, expected {tuple(tensor.shape)}"
            raise ModelError(f"{source}: {name} is {shapes}: it is of a model of another shape")
    model.load_state_dict(weights)
