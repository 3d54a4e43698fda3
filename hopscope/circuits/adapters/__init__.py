"""Models that hopscope did not make, run by the engine like its own.

`adapter_of` takes hopscope's transformers, every decoder of transformers whose attention goes
through its attention interface, TransformerLens models, torch's own encoders, and anything that is
an adapter. An adapter is held against its model's own outputs on its first examples, and again on
longer ones. For any other module:

    BlockAdapter(embed, block, unembed, module, shape)    # cut into blocks; everything works
    CallbackModel(forward, module, shape)                 # hands its attention out: slower, and
                                                          # what heads bring cannot be replaced
"""

from torch import nn

from hopscope.circuits.adapters.blocks import BlockAdapter
from hopscope.circuits.adapters.callback import CallbackModel, transformer_lens
from hopscope.circuits.adapters.decoder import DecoderAdapter, is_decoder
from hopscope.circuits.adapters.encoder import EncoderAdapter
from hopscope.circuits.adapters.own import OwnAdapter
from hopscope.circuits.engine import Adapter
from hopscope.errors import CircuitError
from hopscope.models import Transformer

__all__ = [
    "AnyModel",
    "BlockAdapter",
    "CallbackModel",
    "DecoderAdapter",
    "EncoderAdapter",
    "OwnAdapter",
    "adapter_of",
]

AnyModel = Adapter | CallbackModel | nn.Module


def adapter_of(model: AnyModel) -> Adapter | CallbackModel:
    """The model, ready to be examined."""
    if isinstance(model, Transformer):
        return OwnAdapter(model)
    if isinstance(model, Adapter | CallbackModel):
        return model
    if is_decoder(model):
        return DecoderAdapter(model)
    if isinstance(model, nn.TransformerEncoder):
        return EncoderAdapter(model)
    if any(cls.__name__ == "TransformerBridge" for cls in type(model).__mro__):
        return transformer_lens(model)
    inside = getattr(model, "model", None)
    if isinstance(inside, nn.Module) and not isinstance(model, nn.Module):
        raise CircuitError(f"a {type(model).__name__} is no model, but has one: give its `.model`")
    raise CircuitError(
        f"there is no adapter for a {type(model).__name__}; there are adapters for decoders of "
        "transformers, TransformerLens, nn.TransformerEncoder, and by hopscope.circuits."
        "BlockAdapter or CallbackModel for any module"
    )
