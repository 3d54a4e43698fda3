"""The transformer that everything here trains, plants and reads."""

from hopscope.models.folder import filled, load, save
from hopscope.models.transformer import NO_EDITS, AttentionEdit, Edits, HeadEdit, Transformer

__all__ = [
    "NO_EDITS",
    "AttentionEdit",
    "Edits",
    "HeadEdit",
    "Transformer",
    "filled",
    "load",
    "save",
]
