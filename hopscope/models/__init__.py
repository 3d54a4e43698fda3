"""hopscope's transformer: the model that is trained, planted and examined."""

from hopscope.models.transformer import AttentionEdit, Transformer, model_from

__all__ = ["AttentionEdit", "Transformer", "model_from"]
