"""Adapters, with which the engine runs models of other libraries.

`adapter_of` takes hopscope's transformers, every decoder of transformers that uses its attention
interface, TransformerLens models, torch's encoders, and adapters. An adapter is compared with its
model's own outputs on its first examples, and again on longer ones. For any other module:

    BlockAdapter(embed, block, unembed, module, shape)    # split into blocks; everything works
    CallbackModel(forward, module, shape)                 # attention by callback: slower, and
                                                          # head outputs cannot be replaced
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from hopscope.circuits.adapters.blocks import BlockAdapter
from hopscope.circuits.adapters.callback import CallbackModel, transformer_lens
from hopscope.circuits.adapters.decoder import DecoderAdapter
from hopscope.circuits.adapters.encoder import EncoderAdapter
from hopscope.circuits.adapters.nanogpt import nanogpt
from hopscope.circuits.adapters.transformer import TransformerAdapter
from hopscope.circuits.engine import Adapter
from hopscope.errors import CircuitError
from hopscope.models import Transformer

__all__ = [
    "ADAPTERS",
    "AnyModel",
    "BlockAdapter",
    "CallbackModel",
    "DecoderAdapter",
    "EncoderAdapter",
    "TransformerAdapter",
    "adapter_of",
    "nanogpt",
    "replaceable",
]

AnyModel = Adapter | CallbackModel | nn.Module

ADAPTERS: dict[str, Callable[[Any], Adapter | CallbackModel]] = {
    "PreTrainedModel": DecoderAdapter,
    "TransformerBridge": transformer_lens,
    "TransformerEncoder": EncoderAdapter,
}
"""The adapter for each class name (of the model's class, or a base class). Add your own."""


def adapter_of(model: AnyModel) -> Adapter | CallbackModel:
    """The adapter for a model; raises CircuitError if there is none."""
    model = getattr(model, "_orig_mod", model)  # torch.compile's wrapper holds the module itself
    if isinstance(model, Transformer):
        return TransformerAdapter(model)
    if isinstance(model, Adapter | CallbackModel):
        return model
    classes = {cls.__name__ for cls in type(model).__mro__}
    if name := next((name for name in reversed(ADAPTERS) if name in classes), None):
        return ADAPTERS[name](model)
    held = "module" if isinstance(model, nn.Module) else "model"  # DataParallel has a `module`
    if isinstance(getattr(model, held, None), nn.Module):
        raise CircuitError(
            f"a {type(model).__name__} is not a model, but has one: pass its `.{held}`"
        )
    raise CircuitError(
        f"there is no adapter for {type(model).__name__}: take EncoderAdapter (a module around "
        "nn.TransformerEncoder), BlockAdapter or CallbackModel (any module) of hopscope.circuits"
    )


def replaceable(model: AnyModel) -> Adapter:
    """The adapter for a model whose head outputs can be replaced; raises CircuitError for a
    CallbackModel.
    """
    adapter = adapter_of(model)
    if isinstance(adapter, CallbackModel):
        raise CircuitError(
            "a CallbackModel cannot replace head outputs; expected an Adapter: write a BlockAdapter"
        )
    return adapter
