"""The compiled `native/`: its structures, where it is found, how it is called."""

import ctypes
import warnings
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

LANES, LONGEST, WIDEST, BLOCK, CHUNKS = 16, 128, 128, 64, 32  # as in native/


class AttentionTask(ctypes.Structure):
    """`Attention` of attention.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("batch", "heads", "read", "seq", "width", "causal")),
        ("query_row", ctypes.c_long),
        ("key_row", ctypes.c_long),
        ("scale", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("query", "key", "value", "out", "logsum")),
        *((f"{name}_gradient", ctypes.c_void_p) for name in ("out", "query", "key", "value")),
    )


class AffineTask(ctypes.Structure):
    """`Affine` of affine.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("models", "ins", "outs")),
        ("rows", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("x", "weight", "bias", "y")),
        *((f"{name}_gradient", ctypes.c_void_p) for name in ("y", "x", "weight", "bias")),
        ("packed", ctypes.c_void_p),
    )


class MlpTask(ctypes.Structure):
    """`Mlp` of affine.c."""

    _fields_ = (("up", AffineTask), ("down", AffineTask))


class NormTask(ctypes.Structure):
    """`Norm` of norm.c."""

    _fields_ = (
        ("models", ctypes.c_int),
        ("width", ctypes.c_int),
        ("rows", ctypes.c_long),
        ("epsilon", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("x", "gain", "shift", "y", "statistics")),
        *((name, ctypes.c_void_p) for name in ("y_gradient", "x_gradient", "partial")),
    )


@cache
def loaded() -> ctypes.CDLL | None:
    """The compiled kernels, or None where there are none or they cannot be run."""
    compiled = find_spec("hopscope.models._kernels")
    # torch's own query, which has no public name.
    if compiled is None or not torch.cpu._is_avx512_bf16_supported():  # noqa: SLF001
        return None
    try:
        return ctypes.CDLL(compiled.origin)
    except OSError as error:
        warnings.warn(
            f"the kernels in C cannot be loaded, so torch does their work, more slowly: {error}; "
            "install hopscope again with gcc (CC=gcc)",
            stacklevel=2,
        )
        return None


def path() -> str:
    """By what products of bf16 on a CPU are computed."""
    return "torch" if loaded() is None else "avx512"


def places(**tensors: Tensor) -> dict[str, int]:
    """Where the numbers of each tensor begin."""
    return {name: tensor.data_ptr() for name, tensor in tensors.items()}


def run(name: str, task: ctypes.Structure) -> None:
    """Call the kernel of this name."""
    kernels = loaded()
    assert kernels is not None
    getattr(kernels, f"hopscope_{name}")(ctypes.byref(task))
