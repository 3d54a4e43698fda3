"""Check of the kernels in C and in Triton against torch on this machine; it takes seconds.

The gradients of a small model are computed in float64, in bf16 by torch, and in bf16 by every
possible backend. The error of torch is due to bf16; a correct kernel has about the same error.
"""

from contextlib import nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.configs import Interface, Model
from hopscope.models import native
from hopscope.models.transformer import Transformer

MODEL = Model(layers=2, heads=2, d_model=64, init="fan-in")
INTERFACE = Interface(tokens=False, inputs=8, length=28, read=4, outputs=8)
BATCH, SEED = 8, 0
ALLOWED = 2.0
"""The largest allowed error of a kernel, relative to torch's in bf16. Measured: 0.8 to 0.9."""


@dataclass(frozen=True)
class Agreement:
    """The distance of one backend's gradients from those in float64, relative to their norm."""

    backend: native.Backend
    error: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """True if the error is allowed (NaN is not)."""
        return self.error <= self.allowed


def agreements() -> list[Agreement]:
    """Every backend that is possible here, except torch, compared with torch."""
    exact = _gradients(torch.float64, "torch")

    def error(backend: native.Backend) -> float:
        return float((_gradients(torch.bfloat16, backend) - exact).norm() / exact.norm())

    allowed = ALLOWED * error("torch")
    gpu = native.gpu_backend(torch.device("cuda"))
    backends = [each for each in (*native.possible(), gpu) if each != "torch"]
    return [Agreement(each, error(each), allowed) for each in backends]


def _gradients(dtype: torch.dtype, backend: native.Backend) -> Float[Tensor, "parameter"]:
    """The gradients of the mean squared error with respect to all parameters, concatenated."""
    generator = torch.Generator().manual_seed(SEED)

    def numbers(*shape: int) -> Tensor:
        """Random numbers that bf16 can represent, so that every backend gets the same."""
        return torch.randn(*shape, generator=generator).bfloat16().to(device, dtype)

    device = "cuda" if backend == "triton" else "cpu"

    inputs = numbers(BATCH, INTERFACE.length, INTERFACE.inputs)
    targets = numbers(BATCH, INTERFACE.read, INTERFACE.outputs)
    with nullcontext() if backend == "triton" else native.using(backend):
        model = Transformer.seeded(MODEL, INTERFACE, SEED).bfloat16().to(device, dtype)
    (model(inputs) - targets).square().mean().backward()
    found = [x.grad.flatten() for x in model.parameters() if x.grad is not None]
    return torch.cat(found).double().cpu()
