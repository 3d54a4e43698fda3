"""The transformer that everything here trains, plants and reads."""

from hopscope.models.transformer import AttentionEdit, Transformer
from hopscope.models.weights import model_from

__all__ = ["AttentionEdit", "Transformer", "model_from"]
