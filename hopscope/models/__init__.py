"""The transformer that everything here trains, plants and reads."""

from hopscope.models.folder import load, model_from, save
from hopscope.models.transformer import AttentionEdit, Transformer

__all__ = [
    "AttentionEdit",
    "Transformer",
    "load",
    "model_from",
    "save",
]
