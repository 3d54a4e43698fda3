"""The transformer that everything here trains, plants and reads."""

from hopscope.models.folder import filled, load, save
from hopscope.models.transformer import AttentionEdit, Transformer

__all__ = [
    "AttentionEdit",
    "Transformer",
    "filled",
    "load",
    "save",
]
