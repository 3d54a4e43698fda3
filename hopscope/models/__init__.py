"""The transformer that everything here trains, plants and reads."""

from hopscope.models.folder import load, model_from, save
from hopscope.models.transformer import NO_EDITS, AttentionEdit, Edits, HeadEdit, Transformer

__all__ = [
    "NO_EDITS",
    "AttentionEdit",
    "Edits",
    "HeadEdit",
    "Transformer",
    "load",
    "model_from",
    "save",
]
