"""`model_from`: a model with given weights."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from hopscope.configs import Interface, Model
from hopscope.errors import ModelError
from hopscope.models.transformer import Transformer


def model_from(
    weights: Mapping[str, Tensor],
    config: Model,
    interface: Interface,
    source: str,
    seeds: Sequence[int] = (),
) -> Transformer:
    """The model (with seeds: the fleet) of this shape with these weights. Raises ModelError if
    names or shapes do not fit; `source` is the name of the weights in the message.

    A shape may need more memory than there is, so it is first compared on the meta device.
    """
    other = "it belongs to a model of another shape"
    if config.layers > len(weights):  # each layer has several weights
        raise ModelError(f"{source} does not have the weights of {config.layers:,} layers: {other}")
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
