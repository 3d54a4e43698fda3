"""Arrays for the page: files of safetensors with JSON in their metadata, without torch."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from hopscope.display import plain

ABOUT = "json"
"""The key of the JSON in a file's metadata."""


def packed(arrays: Mapping[str, np.ndarray], about: object = None) -> bytes:
    """Return a file of these arrays, with `about` as JSON in its metadata."""
    words = None if about is None else {ABOUT: json.dumps(plain(about), ensure_ascii=False)}
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return safetensors.numpy.save(tensors, words)


def unpacked(data: bytes) -> tuple[dict[str, np.ndarray], Any]:
    """Return the arrays of a file from `packed`, and its `about`."""
    size = int.from_bytes(data[:8], "little")
    words = json.loads(data[8 : 8 + size]).get("__metadata__", {})
    return safetensors.numpy.load(data), json.loads(words.get(ABOUT, "null"))
