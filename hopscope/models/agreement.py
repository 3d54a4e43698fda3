"""Do the kernels, in C and on a GPU in Triton, agree with torch on this machine? Seconds tell.

The gradients of a small model are computed in float64, in bf16 by torch alone, and in bf16 by every
backend that this machine can take. bf16 has an error of its own, which torch shows; a kernel that
does as it should has about the same.
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
"""Errors of torch in bf16 that a kernel may have: it rounds elsewhere. Measured: 0.8 to 0.9."""


@dataclass(frozen=True)
class Agreement:
    """How far the gradients of one backend are from those in float64, as a share of these."""

    backend: native.Backend
    error: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """Is the error that of bf16, and no greater? (NaN is not.)"""
        return self.error <= self.allowed


def agreements() -> list[Agreement]:
    """Every backend that this machine can take beside torch, compared with torch."""
    exact = _gradients(torch.float64, "torch")

    def error(backend: native.Backend) -> float:
        return float((_gradients(torch.bfloat16, backend) - exact).norm() / exact.norm())

    allowed = ALLOWED * error("torch")
    gpu = native.gpu_backend(torch.device("cuda"))
    backends = [each for each in (*native.possible(), gpu) if each != "torch"]
    return [Agreement(each, error(each), allowed) for each in backends]


def _gradients(dtype: torch.dtype, backend: native.Backend) -> Float[Tensor, "parameter"]:
    """Of the mean squared error, of all parameters in a row."""
    generator = torch.Generator().manual_seed(SEED)

    def numbers(*shape: int) -> Tensor:
        """What bf16 can hold, so that all compute with the same."""
        return torch.randn(*shape, generator=generator).bfloat16().to(device, dtype)

    device = "cuda" if backend == "triton" else "cpu"

    inputs = numbers(BATCH, INTERFACE.length, INTERFACE.inputs)
    targets = numbers(BATCH, INTERFACE.read, INTERFACE.outputs)
    with nullcontext() if backend == "triton" else native.using(backend):
        model = Transformer.seeded(MODEL, INTERFACE, SEED).bfloat16().to(device, dtype)
    (model(inputs) - targets).square().mean().backward()
    found = [x.grad.flatten() for x in model.parameters() if x.grad is not None]
    return torch.cat(found).double().cpu()
