"""Which arithmetic a training computes in, and where."""

import torch

from hopscope.configs import Training
from hopscope.errors import ConfigError

DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


def device_of(name: str) -> torch.device:
    """The device called `name`; `auto` is the GPU when there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise ConfigError(f"device is {name!r}; expected auto, cpu or cuda")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device is {name!r}, but torch sees no GPU: use --device cpu")
    return device


def precision_of(training: Training, device: torch.device) -> str:
    """`auto` means bf16 where the processor multiplies it natively, else float32."""
    if training.precision != "auto":
        return training.precision
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        return "bf16" if native else "float32"
    return "bf16" if _native_bf16() else "float32"


def _native_bf16() -> bool:
    # Emulated bf16 is slower than float32. Both queries are torch's own, without a public name.
    return bool(
        torch.cpu._is_avx512_bf16_supported()  # noqa: SLF001
        or torch.cpu._is_amx_tile_supported()  # noqa: SLF001
    )
