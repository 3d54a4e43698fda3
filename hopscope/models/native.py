"""Choice of the kernels for bf16 models; loading and calling the kernels in C (`csrc/`).

There are four backends. On a CPU: *amx* (matrix products with AMX tiles), *avx512* (with AVX-512
vectors) and *torch* (without our kernels). On a GPU: *triton* and *torch*. A model uses the best
possible backend, unless `HOPSCOPE_KERNELS` names another for the whole process, or `using` for the
models made inside it. The backends round differently.
"""

import ctypes
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Literal

import torch
from torch import Tensor

from hopscope.errors import ConfigError, RunWarning
from hopscope.models.torch_private import processor_has

Backend = Literal["amx", "avx512", "triton", "torch"]
ON_CPU: tuple[Backend, ...] = ("amx", "avx512", "torch")
VARIABLE = "HOPSCOPE_KERNELS"
OLDEST_GPU = (8, 0)
"""The lowest compute capability with bf16 products, which the kernels in Triton need."""


def _pointers(*names: str) -> tuple[tuple[str, type[ctypes.c_void_p]], ...]:
    return tuple((name, ctypes.c_void_p) for name in names)


def _maps(*names: str) -> tuple[tuple[str, type[ctypes.c_void_p]], ...]:
    """Pointers to the weight and bias of each map."""
    return _pointers(*(f"{name}_{part}" for name in names for part in ("weight", "bias")))


_INTEGERS = (
    "models", "batch", "seq", "read", "width", "heads", "inner", "hidden", "causal", "tiles",
)  # fmt: skip


class Sizes(ctypes.Structure):
    """The struct `Sizes` of sublayers.c, field by field."""

    _fields_ = (
        *((name, ctypes.c_int) for name in _INTEGERS),
        ("epsilon", ctypes.c_float),
    )


_INPUTS = _pointers("x", "gain", "shift")
_REST = _pointers("y", "saved", "gradient", "x_gradient", "gain_gradient", "shift_gradient")


def _gradients(*names: str) -> tuple[tuple[str, type[ctypes.c_void_p]], ...]:
    """Pointers to the gradients of the weight and bias of each map."""
    return tuple((f"{name}_gradient", pointer) for name, pointer in _maps(*names))


class AttentionSublayer(ctypes.Structure):
    """The struct `AttentionSublayer` of sublayers.c, field by field."""

    _fields_ = (
        ("sizes", Sizes), *_INPUTS, *_maps("query", "key", "value", "out"), *_REST,
        *_gradients("query", "packed", "out"),
    )  # fmt: skip


class MlpSublayer(ctypes.Structure):
    """The struct `MlpSublayer` of sublayers.c, field by field."""

    _fields_ = (
        ("sizes", Sizes), *_INPUTS, *_maps("up", "down"), *_REST, *_gradients("up", "down"),
    )  # fmt: skip


Sublayer = AttentionSublayer | MlpSublayer
STRUCTS = Sizes, AttentionSublayer, MlpSublayer


@cache
def library() -> tuple[ctypes.CDLL | None, str]:
    """The compiled kernels and an empty text; or None and the reason why they cannot be used."""
    if not processor_has("avx512_bf16"):
        return None, "the processor has no AVX-512 BF16"
    found = find_spec("hopscope.models._kernels")
    if found is None:
        return None, (
            "the kernels in C were not compiled: install gcc 11 or later, and hopscope again with "
            "CC=gcc"
        )
    try:
        kernels = ctypes.CDLL(found.origin)
        compiled = (ctypes.c_long * len(STRUCTS)).in_dll(kernels, "hopscope_struct_sizes")
        same = list(compiled) == [ctypes.sizeof(struct) for struct in STRUCTS]
        why = "" if same else "they were compiled from another version of hopscope"
    except (OSError, ValueError) as error:  # ValueError: the library has no struct sizes
        why = str(error)
    if why:
        again = "install hopscope again with gcc (CC=gcc)"
        warnings.warn(
            f"the kernels in C cannot be used, so torch computes, more slowly: {why}; {again}",
            RunWarning,
            stacklevel=2,
        )
        return None, f"the kernels in C cannot be used: {again}"
    kernels.hopscope_saved_bytes.restype = ctypes.c_long
    return kernels, ""


@cache
def possible() -> tuple[Backend, ...]:
    """The backends that are possible on this processor, best first."""
    kernels, _ = library()
    if kernels is None:
        return ("torch",)
    # The system must permit AMX tiles, and torch may not have requested them yet.
    if processor_has("amx_tile") and kernels.hopscope_ask_for_tiles():
        return "amx", "avx512", "torch"
    return "avx512", "torch"


def saved_bytes(sizes: Sizes) -> int:
    """How many bytes a sublayer saves for its backward pass."""
    size: int = _library().hopscope_saved_bytes(ctypes.byref(sizes))
    return size


def compute(task: Sublayer, way: Literal["", "_back"], **tensors: Tensor) -> None:
    """Compute a sublayer, forward ("") or backward; a tensor is passed in the field of its name."""
    for field, tensor in tensors.items():
        setattr(task, field, tensor.data_ptr())
    name = "attention" if isinstance(task, AttentionSublayer) else "mlp"
    getattr(_library(), f"hopscope_{name}_sublayer{way}")(ctypes.byref(task))


def _library() -> ctypes.CDLL:
    kernels, _ = library()
    assert kernels is not None
    return kernels


_chosen: ContextVar[Backend | None] = ContextVar("chosen", default=None)


@contextmanager
def using(wanted: str) -> Iterator[None]:
    """A context in which models that are made, moved or cast use this backend."""
    token = _chosen.set(_checked("using", wanted))
    try:
        yield
    finally:
        _chosen.reset(token)


def backend() -> Backend:
    """The CPU backend for a model that is made now."""
    chosen, named = _chosen.get(), os.environ.get(VARIABLE)
    if chosen or not named:
        return chosen or possible()[0]
    return _checked(VARIABLE, named)


def backend_on(device: torch.device) -> Backend:
    """The backend for a model that is made on this device now."""
    here = backend()  # an unknown name is an error on every device
    if device.type == "cpu":
        return here
    return gpu_backend(device) if device.type == "cuda" else "torch"


def gpu_backend(device: torch.device) -> Backend:
    """The backend for a model on this GPU; torch if there is no GPU."""
    forced = "torch" in (_chosen.get(), os.environ.get(VARIABLE))
    return "torch" if forced or why_no_triton(device) else "triton"


def _checked(source: str, wanted: str) -> Backend:
    for each in possible():
        if each == wanted:
            return each
    why = (
        f"{wanted!r} is not available here: it needs the processor, the system's permission, and a "
        "compiler at installation; name another backend or none"
        if wanted in ON_CPU
        else f"got {wanted!r}, expected amx, avx512 or torch"
    )
    raise ConfigError(f"{source}: {why} (possible here: {', '.join(possible())})")


def why_none_better() -> str:
    """Why models do not use the best backend, amx, and what to do; empty if they do."""
    best, taken = possible()[0], backend()
    if taken != best:
        return f"{VARIABLE} forces it; {best} is possible here: unset {VARIABLE} to take it"
    if best == "amx":
        return ""
    if best == "avx512":
        tiles = processor_has("amx_tile")
        return "the system does not permit AMX" if tiles else "the processor has no AMX"
    _, why = library()
    return why


@cache
def why_no_triton(device: torch.device) -> str:
    """Why Triton's kernels cannot run on this GPU, and what to do; empty if they can.

    Triton needs a C compiler and Python's headers, which may be missing. So this function runs one
    kernel, and warns once if that fails.
    """
    if not torch.cuda.is_available():
        return "torch sees no GPU"
    if torch.cuda.get_device_capability(device) < OLDEST_GPU:
        return "this GPU does not multiply bf16"
    if find_spec("triton") is None:
        return "Triton is not installed: pip install triton"
    try:
        try_triton(device)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # noqa: BLE001  (from a compiler, a linker, a driver, or Triton)
        said = (str(error).splitlines() or [type(error).__name__])[0][:60].replace(": ", ", ")
        why = (
            f"Triton runs no kernel here ({said}), torch computes more slowly: install gcc and "
            f"Python's headers (python3-dev), or set {VARIABLE}=torch"
        )
        warnings.warn(why, RunWarning, stacklevel=2)
        return why
    return ""


def try_triton(device: torch.device) -> None:
    """Run a small kernel."""
    from hopscope.models import cuda_ops

    row = torch.ones(1, 1, 16, device=device)
    cuda_ops.norm(row, row[0, 0], row[0, 0])
    torch.cuda.synchronize(device)
