"""Which kernels compute a bf16 model, and how those in C (`csrc/`) are loaded and called.

There are four backends. On a CPU: *amx* (products in the processor's tiles), *avx512* (in its
vectors) and *torch* (no kernels of ours). On a GPU: *triton* and *torch*. The best that is possible
is taken, unless `HOPSCOPE_KERNELS` names another for the whole process, or `using` for the models
that are made inside it. Each backend rounds in its own way.
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
"""The least compute capability that the kernels in Triton need: the first that multiplies bf16."""


def _pointers(*names: str) -> tuple[tuple[str, type[ctypes.c_void_p]], ...]:
    return tuple((name, ctypes.c_void_p) for name in names)


def _maps(*names: str) -> tuple[tuple[str, type[ctypes.c_void_p]], ...]:
    """Pointers to weight and bias of each."""
    return _pointers(*(f"{name}_{part}" for name in names for part in ("weight", "bias")))


class Sizes(ctypes.Structure):
    """The struct `Sizes` of sublayers.c, field by field."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("models", "batch", "seq", "read", "width", "heads")),
        *((name, ctypes.c_int) for name in ("inner", "hidden", "causal", "tiles")),
        ("epsilon", ctypes.c_float),
    )


_INPUTS = _pointers("x", "gain", "shift")
_BETWEEN = _pointers(
    "y", "saved", "gradient", "x_gradient", "gain_gradient", "shift_gradient"
)  # fmt: skip


class AttentionSublayer(ctypes.Structure):
    """The struct `AttentionSublayer` of sublayers.c, field by field."""

    _fields_ = (
        ("sizes", Sizes), *_INPUTS, *_maps("query", "key", "value", "out"), *_BETWEEN,
        *_maps("query_gradient", "packed_gradient", "out_gradient"),
    )  # fmt: skip


class MlpSublayer(ctypes.Structure):
    """The struct `MlpSublayer` of sublayers.c, field by field."""

    _fields_ = (
        ("sizes", Sizes), *_INPUTS, *_maps("up", "down"), *_BETWEEN,
        *_maps("up_gradient", "down_gradient"),
    )  # fmt: skip


Sublayer = AttentionSublayer | MlpSublayer
STRUCTS = Sizes, AttentionSublayer, MlpSublayer


@cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None where there are none or they cannot be used."""
    found = find_spec("hopscope.models._kernels")
    if found is None or not processor_has("avx512_bf16"):
        return None
    try:
        kernels = ctypes.CDLL(found.origin)
        same = _struct_sizes(kernels) == [ctypes.sizeof(struct) for struct in STRUCTS]
        why = "" if same else "they were compiled from another version of hopscope"
    except (OSError, ValueError) as error:  # ValueError: there are no sizes
        why = str(error)
    if why:
        warnings.warn(
            f"the kernels in C cannot be used, so torch computes, more slowly: {why}; "
            "install hopscope again with gcc (CC=gcc)",
            RunWarning,
            stacklevel=2,
        )
        return None
    kernels.hopscope_saved_bytes.restype = ctypes.c_long
    return kernels


def _struct_sizes(kernels: ctypes.CDLL) -> list[int]:
    """The sizes of STRUCTS as they were compiled."""
    return list((ctypes.c_long * len(STRUCTS)).in_dll(kernels, "hopscope_struct_sizes"))


@cache
def possible() -> tuple[Backend, ...]:
    """The backends that this processor can take, best first."""
    kernels = library()
    if kernels is None:
        return ("torch",)
    # The system must permit the tiles, and torch may not have asked yet.
    if processor_has("amx_tile") and kernels.hopscope_ask_for_tiles():
        return "amx", "avx512", "torch"
    return "avx512", "torch"


def saved_bytes(sizes: Sizes) -> int:
    """How many bytes a sublayer saves for its backward pass."""
    size: int = _library().hopscope_saved_bytes(ctypes.byref(sizes))
    return size


def run(task: Sublayer, way: Literal["", "_back"], **tensors: Tensor) -> None:
    """Compute a sublayer, forward or backward; each field points to the tensor of its name."""
    for field, tensor in tensors.items():
        setattr(task, field, tensor.data_ptr())
    name = "attention" if isinstance(task, AttentionSublayer) else "mlp"
    getattr(_library(), f"hopscope_{name}_sublayer{way}")(ctypes.byref(task))


def _library() -> ctypes.CDLL:
    kernels = library()
    assert kernels is not None
    return kernels


_chosen: ContextVar[Backend | None] = ContextVar("chosen", default=None)


@contextmanager
def using(wanted: str) -> Iterator[None]:
    """Models that are made, moved or cast inside take this backend."""
    token = _chosen.set(_checked("using", wanted))
    try:
        yield
    finally:
        _chosen.reset(token)


@cache
def usual() -> Backend:
    """The processor's backend that the environment names, or else the best."""
    wanted = os.environ.get(VARIABLE)
    return _checked(VARIABLE, wanted) if wanted else possible()[0]


def backend() -> Backend:
    """The processor's backend that a model takes which is made now."""
    return _chosen.get() or usual()


def backend_on(device: torch.device) -> Backend:
    """The backend that a model takes which is made on this device now."""
    here = backend()  # an unknown name is an error on every device
    if device.type == "cpu":
        return here
    return gpu_backend(device) if device.type == "cuda" else "torch"


def gpu_backend(device: torch.device) -> Backend:
    """The same for a GPU; it need not be there."""
    forced = "torch" in (_chosen.get(), os.environ.get(VARIABLE))
    return "torch" if forced or why_no_triton(device) else "triton"


def _checked(source: str, wanted: str) -> Backend:
    for each in possible():
        if each == wanted:
            return each
    here = f"(possible here: {', '.join(possible())})"
    if wanted not in ON_CPU:
        raise ConfigError(f"{source}: got {wanted!r}, expected amx, avx512 or torch {here}")
    raise ConfigError(
        f"{source}: {wanted!r} cannot be taken here: the processor, the system's permission or, at "
        f"installation, the compiler was missing; name another backend or none {here}"
    )


def why_none_better() -> str:
    """Why the best backend, amx, is not taken, and what to do; empty where it is."""
    best, taken = possible()[0], backend()
    if taken != best:
        return f"{VARIABLE} forces it; {best} is possible here: unset {VARIABLE} to take it"
    if best == "amx":
        return ""
    if best == "avx512":
        return (
            "the system does not permit the tiles that the processor has (AMX)"
            if processor_has("amx_tile")
            else "the processor has no AMX"
        )
    if not processor_has("avx512_bf16"):
        return "the processor has no AVX-512 BF16"
    if find_spec("hopscope.models._kernels") is None:
        return (
            "the kernels in C were not compiled: install gcc 11 or later, and hopscope again with "
            "CC=gcc"
        )
    return "the kernels in C cannot be used: install hopscope again with gcc (CC=gcc)"


@cache
def why_no_triton(device: torch.device) -> str:
    """Why Triton's kernels cannot run on this GPU, and what to do; empty where they can.

    An installed Triton need not run: it compiles with the machine's C compiler and the headers of
    Python. So one kernel is tried; where it fails, a warning says so once.
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
    except Exception as error:  # noqa: BLE001  (of a compiler, a linker, a driver, or Triton)
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
