"""Record a training step as a CUDA graph: hundreds of tiny kernels become one replay."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hopscope.tasks import Batch

WARM_UPS = 3
"""The number of updates that run before the recording; their changes are undone."""


class RecordedUpdate:
    """An update recorded as a CUDA graph, which is called with a batch.

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
    """Record a step on the GPU of the touched tensors; returns a function that replays it.

    Memory and library handles must exist before the recording. So the step first runs a few times,
    and its changes are undone.
    """
    with torch.cuda.device_of(touched[0]):
        before = [tensor.clone() for tensor in touched]
        warm_up_stream = torch.cuda.Stream()
        warm_up_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm_up_stream):
            for _ in range(WARM_UPS):
                step()
        torch.cuda.current_stream().wait_stream(warm_up_stream)
        for tensor, value in zip(touched, before, strict=True):
            tensor.copy_(value)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):  # default: first GPU
            result = step()

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay
