"""On a GPU a small model's step is hundreds of tiny kernels; record them once, replay at once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hopscope.tasks import Batch

WARM_UPS = 3
"""Updates that run before the recording, and are undone."""


class Recorded:
    """An update recorded as a CUDA graph; inputs and targets of a batch are all that it is given.

    `touched` are the tensors that the update changes in place: memory and library handles must
    exist before the recording, so the update runs a few times first, and that is undone.
    """

    def __init__(
        self, update: Callable[[Batch], Tensor], batch: Batch, touched: Sequence[Tensor]
    ) -> None:
        self.batch = Batch(batch.inputs.clone(), batch.targets.clone(), batch.roles)
        before = [tensor.clone() for tensor in touched]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                update(self.batch)
        torch.cuda.current_stream().wait_stream(aside)
        for tensor, value in zip(touched, before, strict=True):
            tensor.copy_(value)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.losses = update(self.batch)

    def __call__(self, batch: Batch) -> Tensor:
        self.batch.inputs.copy_(batch.inputs)
        self.batch.targets.copy_(batch.targets)
        self.graph.replay()
        return self.losses.clone()
