"""All weights of a model in one vector, so that a step handles them in a few operations.

The optimiser works on a float32 master. The model computes with views of a second vector in
the compute precision (the same memory, if that is float32), and its gradients land in a third.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

ALIGN = 16  # numbers; every tensor starts on a cache line


class FlatWeights:
    """Takes over a module's parameters: from here on they are views."""

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        parameters = dict(model.named_parameters())
        self.shapes = {name: p.shape for name, p in parameters.items()}
        self.starts, total = _places(parameters)
        device = next(iter(parameters.values())).device
        self.master = nn.Parameter(torch.zeros(total, device=device))
        self.gradient = torch.zeros(total, dtype=dtype, device=device)
        same = dtype == torch.float32
        self.compute = self.master.data if same else torch.zeros_like(self.gradient)
        self.master.grad = self.gradient if same else torch.zeros_like(self.master.data)
        for name, parameter in parameters.items():
            self._view(self.master.data, name).copy_(parameter.data)
            parameter.data = self._view(self.compute, name)
            parameter.grad = self._view(self.gradient, name)
        self.refresh()

    def refresh(self) -> None:
        """Let the model compute with the master's present values; forget the gradients."""
        if self.compute is not self.master.data and self.compute.dtype != torch.float32:
            self.compute.copy_(self.master.data)
        self.gradient.zero_()

    def collect(self) -> None:
        """Hand the gradients to the master."""
        if self.gradient.dtype != torch.float32:
            assert self.master.grad is not None
            self.master.grad.copy_(self.gradient)

    def named(self) -> dict[str, Tensor]:
        """The master's values under the model's own names."""
        return {name: self._view(self.master.data, name) for name in self.shapes}

    def load(self, values: dict[str, Tensor]) -> None:
        for name in self.shapes:
            self._view(self.master.data, name).copy_(values[name])
        self.refresh()

    def _view(self, flat: Float[Tensor, "total"], name: str) -> Tensor:
        shape, start = self.shapes[name], self.starts[name]
        return flat[start : start + shape.numel()].view(shape)


def _places(parameters: dict[str, nn.Parameter]) -> tuple[dict[str, int], int]:
    starts, total = {}, 0
    for name, parameter in parameters.items():
        starts[name] = total
        total += -(-parameter.numel() // ALIGN) * ALIGN
    return starts, total
