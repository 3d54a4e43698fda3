"""Which models can be asked several answers side by side, and up to which length.

Answers share one sequence as a tree, and the prompts of a batch are filled up in front: see `tree`
and `local`. Every token is told its place and what it may see. So a model is asked only if its
layers go by that alone: none counts places itself, and none hands a state from token to token. And
a prompt must fit into the narrowest window, since what a window hides is not hidden here.
"""

from inspect import signature
from typing import Any

from hopscope.errors import LlmError

KINDS = {"full_attention", "sliding_attention", "chunked_attention"}
"""Layers that go by what they are told; transformers' names."""
WINDOWS = {
    "sliding_attention": "sliding_window",
    "chunked_attention": "attention_chunk_size",
    "local": "window_size",
}
"""Kinds of layers that see a window alone, and where a config has its width."""


def check(model: Any, name: str) -> None:
    """Refuse a model that goes by other places than those it is told."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ())
    told = signature(model.forward).parameters
    if kinds - KINDS or getattr(model, "_is_stateful", False):
        does = "has layers other than plain attention"
    elif getattr(config, "alibi", False) or "position_ids" not in told:
        does = "counts the places of tokens itself (ALiBi does, for one)"
    else:
        return
    raise LlmError(
        f"{name} is a model of type {config.model_type}, which {does}: its answers cannot be "
        "scored side by side; serve it, and ask the endpoint with --protocol paper or greedy"
    )


def room(model: Any) -> tuple[int, str] | None:
    """How many tokens fit into a model, and into what of it; None where its config says nothing."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or getattr(config, "attention_layers", None)
    windows = WINDOWS.keys() & (kinds or {"sliding_attention"})
    rooms = [(getattr(config, WINDOWS[kind], None), "window of attention") for kind in windows]
    rooms.append((getattr(config, "max_position_embeddings", None), "context"))
    return min(((size, what) for size, what in rooms if size and size > 0), default=None)
