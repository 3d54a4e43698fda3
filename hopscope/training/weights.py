"""`FlatWeights`: all weights of a model in one vector, so that the optimiser needs one operation.

The optimiser updates a float32 master vector. The model's parameters are views of a copy in the
compute precision (or of the master itself, if that is float32).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopscope.models.torch_private import copy_all

ALIGN = 16  # numbers; in float32 every tensor starts on a cache line


class FlatWeights:
    """The parameters of a module as views of one vector."""

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        named = dict(model.named_parameters())
        self.parameters = dict(sorted(named.items(), key=lambda each: not _is_matrix(each[0])))
        self.shapes = {name: p.shape for name, p in self.parameters.items()}
        self.starts, total = _offsets(self.parameters)
        rest = [start for name, start in self.starts.items() if not _is_matrix(name)]
        self.matrices = min(rest)
        """The index at which the matrices of blocks end; they come first."""
        device = next(iter(self.parameters.values())).device
        self.master = nn.Parameter(torch.zeros(total, device=device))
        self.master.grad = torch.zeros_like(self.master)
        self.gradients = [self._view(self.master.grad, name) for name in self.parameters]
        same = dtype == torch.float32
        self.compute = self.master.data if same else torch.zeros_like(self.master, dtype=dtype)
        for name, parameter in self.parameters.items():
            self._view(self.master.data, name).copy_(parameter.data)
        model.to(dtype)  # so that the model chooses its kernels for this precision
        for name, parameter in self.parameters.items():
            parameter.data = self._view(self.compute, name)
        self.refresh()

    def refresh(self) -> None:
        """Update the model's parameters from the master."""
        if self.compute.dtype != torch.float32:
            self.compute.copy_(self.master.data)

    @torch.no_grad()
    def collect(self) -> None:
        """Move the model's gradients to the master."""
        parameters = self.parameters.values()
        gradients = [p.grad for p in parameters if p.grad is not None]
        assert len(gradients) == len(self.gradients)
        copy_all(self.gradients, gradients)
        for parameter in parameters:
            parameter.grad = None

    def named(self) -> dict[str, Tensor]:
        """Views of the master, by parameter name."""
        return self.parts(self.master.data)

    def parts(self, flat: Float[Tensor, "total"]) -> dict[str, Tensor]:
        """Views of a vector with the same layout as the master, by parameter name."""
        return {name: self._view(flat, name) for name in self.shapes}

    def load(self, values: dict[str, Tensor]) -> None:
        """Overwrite the master and the model's parameters with these values."""
        for name in self.shapes:
            self._view(self.master.data, name).copy_(values[name])
        self.refresh()

    def _view(self, flat: Float[Tensor, "total"], name: str) -> Tensor:
        shape, start = self.shapes[name], self.starts[name]
        return flat[start : start + shape.numel()].view(shape)


def _is_matrix(name: str) -> bool:
    """True if the parameter is a weight matrix of a block."""
    return name.startswith("blocks.") and name.endswith(".weight") and "norm" not in name


def _offsets(parameters: dict[str, nn.Parameter]) -> tuple[dict[str, int], int]:
    starts, total = {}, 0
    for name, parameter in parameters.items():
        starts[name] = total
        total += -(-parameter.numel() // ALIGN) * ALIGN
    return starts, total
