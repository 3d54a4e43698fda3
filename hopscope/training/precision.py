"""Which arithmetic a training computes in, and where."""

import re

import torch

from hopscope.configs import Training
from hopscope.errors import ConfigError
from hopscope.models.native import OLDEST_GPU
from hopscope.models.torch_private import processor_has

DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


def device_of(name: str) -> torch.device:
    """The device called `name`; `auto` is the GPU when there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    match = re.fullmatch(r"cpu|cuda(?::(\d{1,9}))?", name, re.ASCII)
    if match is None:
        raise ConfigError(f"device is {name!r}; expected auto, cpu, cuda or cuda:N")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name != "cpu" and int(match[1] or 0) >= gpus:
        there = ", ".join(f"cuda:{number}" for number in range(gpus)) or "no GPU"
        raise ConfigError(
            f"device is {name!r}, but torch sees {there}: use "
            f"{'one of these, or ' if gpus else ''}--device cpu"
        )
    return torch.device(name)


def precision_of(training: Training, device: torch.device) -> str:
    """`auto` means bf16 where the processor multiplies it natively, else float32."""
    if training.precision != "auto":
        return training.precision
    if device.type == "cuda":
        native = torch.cuda.get_device_capability(device) >= OLDEST_GPU
    else:
        native = _native_bf16()
    return "bf16" if native else "float32"


def _native_bf16() -> bool:
    # Emulated bf16 is slower than float32.
    return processor_has("avx512_bf16") or processor_has("amx_tile")
