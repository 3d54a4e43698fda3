"""Each kernel in C beside torch's way, in one process: time, and distance from float64.

    python benchmarks/kernels.py [--rounds 20]

A turn is forward and backward of one layer's operation in bf16, at both shapes of `train_step.py`.
`off` is the largest error of a gradient against float64, relative to that gradient's largest
number.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

import torch
from torch import Tensor, nn
from train_step import SHAPES, Shape

from hopscope.models import compiled
from hopscope.models.layers import Affine, Attention, Mlp, Norm
from hopscope.tasks import sampler_of
from hopscope.training.allocator import keep_pages


class Attending(nn.Module):
    """Attention of all positions, projections included."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention = Attention((), shape.experiment("bf16").model)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-2]
        mask = torch.full((length, length), -torch.inf, device=x.device).triu(1)
        return self.attention(x, mask, length)


def operations(shape: Shape) -> dict[str, nn.Module]:
    model = shape.experiment("bf16").model
    return {
        "attention": Attending(shape),
        "norm": Norm((), model.d_model),
        "affine, 128 to 512": Affine((), model.d_model, model.mlp_width),
        "mlp": Mlp((), model),
    }


@contextmanager
def kernels(wanted: bool) -> Iterator[None]:
    if wanted:
        yield
    else:
        with mock.patch.object(compiled, "loaded", return_value=None):
            yield


def gradients(operation: nn.Module, x: Tensor, slope: Tensor) -> list[Tensor]:
    x = x.detach().requires_grad_()
    operation.zero_grad()
    operation(x).backward(slope)
    return [each.grad for each in (x, *operation.parameters()) if each.grad is not None]


def off(operation: nn.Module, x: Tensor, slope: Tensor) -> float:
    """The worst gradient's distance from float64."""
    ours = [each.double() for each in gradients(operation, x, slope)]
    exact = gradients(operation.double(), x.double(), slope.double())
    operation.bfloat16()
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, exact, strict=True))


def milliseconds(turn: Callable[[], object]) -> float:
    begun = time.perf_counter()
    turn()
    return 1e3 * (time.perf_counter() - begun)


def rows(shape: Shape, rounds: int) -> Iterator[dict[str, object]]:
    length = sampler_of(shape.experiment("bf16").task).interface().length
    x = torch.randn(shape.batch, length, shape.experiment("bf16").model.d_model).bfloat16()
    for name, operation in operations(shape).items():
        for parameter in operation.parameters():
            nn.init.normal_(parameter, 1.0 if name == "norm" else 0.0, 0.1)
        operation.bfloat16()
        slope = torch.randn(operation(x).shape).bfloat16()
        times: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(rounds + 2):
            for wanted, taken in times.items():
                with kernels(wanted):
                    taken.append(milliseconds(lambda op=operation, to=slope: gradients(op, x, to)))
        for wanted, taken in times.items():
            with kernels(wanted):
                error = off(operation, x, slope)
            median = sorted(taken[2:])[rounds // 2]
            yield {
                "benchmark": "kernels", "shape": shape.name, "operation": name,
                "in": "C" if wanted else "torch", "median_ms": round(median, 2),
                "off": round(error, 4), "threads": torch.get_num_threads(),
            }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    if compiled.loaded() is None:
        parser.error("no kernels here: no compiler at installation, or no AVX-512 BF16")
    keep_pages()
    for shape in SHAPES:
        torch.manual_seed(0)
        for row in rows(shape, chosen.rounds):
            print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
