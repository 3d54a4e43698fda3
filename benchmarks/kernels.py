"""Each kernel in C, on every path of this processor, beside torch: time, error against float64.

    python benchmarks/kernels.py [--rounds 20] [--clock cpu] [--threads 1]

A turn is forward and backward of one layer's operation in bf16, at both shapes of `train_step.py`.
`off` is the largest error of a gradient against float64, relative to that gradient's largest
number.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from train_step import CLOCKS, SHAPES, Shape, where

from hopscope.machine import keep_pages
from hopscope.models import compiled
from hopscope.models.layers import Affine, Attention, Mlp, Norm


class Attending(nn.Module):
    """Attention of all positions, projections included."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention = Attention((), shape.experiment("bf16").model)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x.shape[-2])


def operations(shape: Shape) -> dict[str, nn.Module]:
    model = shape.experiment("bf16").model
    return {
        "attention": Attending(shape),
        "norm": Norm((), model.d_model),
        "affine, 128 to 512": Affine((), model.d_model, model.mlp_width),
        "mlp": Mlp((), model),
    }


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


def milliseconds(turn: Callable[[], object], clock: str) -> float:
    begun = CLOCKS[clock]()
    turn()
    return 1e3 * (CLOCKS[clock]() - begun)


def rows(shape: Shape, rounds: int, clock: str) -> Iterator[dict[str, object]]:
    length = shape.experiment("bf16").task.interface().length
    x = torch.randn(shape.batch, length, shape.experiment("bf16").model.d_model).bfloat16()
    for name, operation in operations(shape).items():
        for parameter in operation.parameters():
            nn.init.normal_(parameter, 1.0 if name == "norm" else 0.0, 0.1)
        operation.bfloat16()
        slope = torch.randn(operation(x).shape).bfloat16()
        times: dict[str, list[float]] = {path: [] for path in compiled.possible()}
        for _ in range(rounds + 2):
            for path, taken in times.items():
                with compiled.using(path):
                    turn = partial(gradients, operation, x, slope)
                    taken.append(milliseconds(turn, clock))
        for path, taken in times.items():
            with compiled.using(path):
                error = off(operation, x, slope)
                median = sorted(taken[2:])[rounds // 2]
                yield {
                    "benchmark": "kernels", "shape": shape.name, "operation": name,
                    "median_ms": round(median, 2), "off": round(error, 4),
                    **where(x.device, clock),
                }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    if compiled.loaded() is None:
        parser.error("no kernels here: no compiler at installation, or no AVX-512 BF16")
    torch.set_num_threads(chosen.threads)
    keep_pages()
    for shape in SHAPES:
        torch.manual_seed(0)
        for row in rows(shape, chosen.rounds, chosen.clock):
            print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
