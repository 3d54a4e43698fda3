"""The compiled `native/`: its structures, where it is found, which path is taken, how it is called.

There are three paths: *amx* (products in the processor's tiles), *avx512* (in its vectors), *torch*
(none of ours). The best that is possible is taken, unless `HOPSCOPE_KERNELS` names another for
the whole process, or `using` for some lines. On a GPU there are two: *triton*, and *torch*, which
is taken where it is named or Triton cannot run. Each path has bits of its own.
"""

import ctypes
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Literal, get_args

import torch
from torch import Tensor

from hopscope.errors import ConfigError, RunWarning

Path = Literal["amx", "avx512", "torch"]
GpuPath = Literal["triton", "torch"]
VARIABLE = "HOPSCOPE_KERNELS"
OLDEST_GPU = (8, 0)
"""The least compute capability that the kernels in Triton need: the first that multiplies bf16."""
LANES, LONGEST, WIDEST, BLOCK = 16, 128, 128, 64  # as in native/


class AttentionTask(ctypes.Structure):
    """The struct `Attention` of attention.h, field by field."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("batch", "heads", "read", "seq")),
        *((name, ctypes.c_int) for name in ("width", "causal", "tiles")),
        ("query_row", ctypes.c_long),
        ("key_row", ctypes.c_long),
        ("scale", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("query", "key", "value", "out", "logsum")),
        *((f"{name}_gradient", ctypes.c_void_p) for name in ("out", "query", "key", "value")),
    )


class AffineTask(ctypes.Structure):
    """The struct `Affine` of affine.h, field by field."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("models", "ins", "outs", "tiles")),
        ("rows", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("x", "weight", "bias", "y")),
        *((f"{name}_gradient", ctypes.c_void_p) for name in ("y", "x", "weight", "bias")),
        *((name, ctypes.c_void_p) for name in ("also", "packed")),  # set in C alone
    )


class MlpTask(ctypes.Structure):
    """The struct `Mlp` of mlp.c, field by field."""

    _fields_ = (("up", AffineTask), ("down", AffineTask))


class NormTask(ctypes.Structure):
    """The struct `Norm` of norm.c, field by field."""

    _fields_ = (
        ("models", ctypes.c_int),
        ("width", ctypes.c_int),
        ("rows", ctypes.c_long),
        ("epsilon", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("x", "gain", "shift", "y", "statistics")),
        *((f"{name}_gradient", ctypes.c_void_p) for name in ("y", "x", "gain", "shift")),
        ("also", ctypes.c_void_p),  # halves of a block alone set it
    )


class Sizes(ctypes.Structure):
    """The struct `Sizes` of half.c, field by field."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("models", "batch", "seq", "read", "width", "heads")),
        *((name, ctypes.c_int) for name in ("inner", "hidden", "causal", "tiles")),
        ("epsilon", ctypes.c_float),
    )


_ENTER = "x", "gain", "shift"
_BETWEEN = "y", "kept", "gradient", "x_gradient", "gain_gradient", "shift_gradient"


def _maps(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}_{part}" for name in names for part in ("weight", "bias"))


class AttentionHalf(ctypes.Structure):
    """The struct `AttentionHalf` of half.c, field by field."""

    _fields_ = (
        ("sizes", Sizes),
        *(
            (name, ctypes.c_void_p)
            for name in (
                *(*_ENTER, *_maps("query", "key", "value", "out"), *_BETWEEN),
                *_maps("query_gradient", "joined_gradient", "out_gradient"),
            )
        ),
    )


class MlpHalf(ctypes.Structure):
    """The struct `MlpHalf` of half.c, field by field."""

    _fields_ = (
        ("sizes", Sizes),
        *(
            (name, ctypes.c_void_p)
            for name in (
                *(*_ENTER, *_maps("up", "down"), *_BETWEEN),
                *_maps("up_gradient", "down_gradient"),
            )
        ),
    )


@cache
def loaded() -> ctypes.CDLL | None:
    """The compiled kernels, or None where there are none or they cannot be run."""
    compiled = find_spec("hopscope.models._kernels")
    if compiled is None or not processor_has("avx512_bf16"):
        return None
    try:
        kernels = ctypes.CDLL(compiled.origin)
    except OSError as error:
        warnings.warn(
            f"the kernels in C cannot be loaded, so torch does their work, more slowly: {error}; "
            "install hopscope again with gcc (CC=gcc)",
            stacklevel=2,
        )
        return None
    kernels.hopscope_half_room.restype = ctypes.c_long
    return kernels


@cache
def possible() -> tuple[Path, ...]:
    """The paths that can be taken here, best first."""
    kernels = loaded()
    if kernels is None:
        return ("torch",)
    # The system must permit the tiles, and torch may not have asked yet.
    if processor_has("amx_tile") and kernels.hopscope_ask_for_tiles():
        return "amx", "avx512", "torch"
    return "avx512", "torch"


def processor_has(feature: str) -> bool:
    """Does torch know that the processor has this? Its queries have no public name, and may go."""
    query = getattr(torch.cpu, f"_is_{feature}_supported", None)
    return query is not None and bool(query())


_chosen: ContextVar[Path | None] = ContextVar("chosen", default=None)


def path() -> Path:
    """The path that is taken now. A run's record names it."""
    return _chosen.get() or usual()


def path_on(device: torch.device) -> Path | GpuPath:
    """The path that is taken on this device."""
    here = path()  # a name that is none is an error on every device
    if device.type == "cpu":
        return here
    return gpu_path(device) if device.type == "cuda" else "torch"


def gpu_path(device: torch.device) -> GpuPath:
    """The path that is taken on this GPU, if it is there."""
    forced = "torch" in (_chosen.get(), os.environ.get(VARIABLE))
    return "triton" if not forced and triton_runs(device) else "torch"


def triton_runs(device: torch.device) -> bool:
    """Can the kernels for a GPU run on this one?"""
    return not why_no_triton(device)


@cache
def why_no_triton(device: torch.device) -> str:
    """Why the kernels for a GPU cannot run on this one, and what to do; nothing where they can.

    That Triton is there does not say that it runs: it compiles with the machine's C compiler, and
    with the headers of Python.
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
    from hopscope.models import triton_kernels

    row, statistics = torch.ones(LANES, device=device), torch.empty(2, device=device)
    with torch.cuda.device(device):  # Triton takes the current one
        triton_kernels.norm[1, 1](
            row, row, row, torch.empty_like(row), statistics, 1, LANES, 1e-5, ROWS=1, WIDTH=LANES
        )
    torch.cuda.synchronize(device)


@contextmanager
def using(wanted: str) -> Iterator[None]:
    """Take this path, forward and backward, for what stands inside."""
    token = _chosen.set(_checked("using", wanted))
    try:
        yield
    finally:
        _chosen.reset(token)


@cache
def usual() -> Path:
    """What the environment says, or else the best."""
    wanted = os.environ.get(VARIABLE)
    return _checked(VARIABLE, wanted) if wanted else possible()[0]


def why_none_better() -> str:
    """Why the best path, amx, is not taken; nothing where it is."""
    best, taken = possible()[0], path()
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
    return "the kernels in C cannot be loaded: install hopscope again with gcc (CC=gcc)"


def _checked(source: str, wanted: str) -> Path:
    for path in possible():
        if path == wanted:
            return path
    here = f"(possible here: {', '.join(possible())})"
    if wanted not in get_args(Path):
        raise ConfigError(f"{source}: got {wanted!r}, expected amx, avx512 or torch {here}")
    raise ConfigError(
        f"{source}: {wanted!r} cannot be taken here: the processor, the system's permission or, at "
        f"installation, the compiler was missing; name another path or none {here}"
    )


def places(**tensors: Tensor | None) -> dict[str, int]:
    """Where the numbers of each tensor that is there begin."""
    return {name: x.data_ptr() for name, x in tensors.items() if x is not None}


def run(name: str, task: ctypes.Structure) -> None:
    """Call the kernel of this name."""
    getattr(_kernels(), f"hopscope_{name}")(ctypes.byref(task))


def half_room(sizes: Sizes) -> int:
    """How many bytes a half of a block keeps for its backward pass."""
    room: int = _kernels().hopscope_half_room(ctypes.byref(sizes))
    return room


def _kernels() -> ctypes.CDLL:
    kernels = loaded()
    assert kernels is not None
    return kernels
