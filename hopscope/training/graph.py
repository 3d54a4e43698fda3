"""On a GPU a small model's step is hundreds of tiny kernels; record them once, replay at once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hopscope.tasks import Batch

WARM_UPS = 3
"""Updates that run before the recording, and are undone."""


class Recorded:
    """An update recorded as a CUDA graph; it is given a batch, each tensor of it.

    `touched` are the tensors that the update changes in place.
    """

    def __init__(
        self, update: Callable[[Batch], Tensor], batch: Batch, touched: Sequence[Tensor]
    ) -> None:
        self.batch = batch.mapped(Tensor.clone)
        self.replay = cuda_graph(lambda: update(self.batch), touched)

    def __call__(self, batch: Batch) -> Tensor:
        self.batch.mapped(Tensor.copy_, batch)
        return self.replay().clone()


def cuda_graph(step: Callable[[], Tensor], touched: Sequence[Tensor]) -> Callable[[], Tensor]:
    """Record a step on the GPU of the tensors that it changes; what is returned replays it.

    Memory and library handles must exist before the recording, so the step runs a few times first,
    and that is undone.
    """
    with torch.cuda.device_of(touched[0]):
        before = [tensor.clone() for tensor in touched]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                step()
        torch.cuda.current_stream().wait_stream(aside)
        for tensor, value in zip(touched, before, strict=True):
            tensor.copy_(value)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):  # its own is of the first GPU
            result = step()

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay
