"""Times and errors of each sublayer of a block, on every backend that is possible on this CPU.

    python benchmarks/kernels.py [--rounds 20] [--clock cpu] [--threads 1]

A turn is the forward and backward pass of one sublayer in bf16, at both shapes of `train_step.py`.
`off` is the largest error of a gradient against float64, relative to the largest number of that
gradient.
"""

import argparse
from collections.abc import Iterator
from functools import partial

import torch
from rows import print_row
from torch import Tensor, nn
from train_step import CLOCKS, SHAPES, Shape, in_turns, median, where

from hopscope.machine import keep_pages
from hopscope.models import native
from hopscope.models.transformer import Block


class Sublayer(nn.Module):
    """The attention or the MLP of a block, its norm and the residual included."""

    def __init__(self, shape: Shape, kind: str) -> None:
        super().__init__()
        self.kind, self.block = kind, Block((), shape.experiment("bf16").model)
        for name, parameter in self.block.named_parameters():
            nn.init.normal_(parameter, 1.0 if "norm.weight" in name else 0.0, 0.1)
        self.block.bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "attention":
            return self.block.attention_sublayer(x, x.shape[-2])
        return self.block.mlp_sublayer(x)


def gradients(sublayer: nn.Module, x: Tensor, slope: Tensor) -> list[Tensor]:
    x = x.detach().requires_grad_()
    sublayer.zero_grad()
    sublayer(x).backward(slope)
    return [each.grad for each in (x, *sublayer.parameters()) if each.grad is not None]


def off(sublayer: nn.Module, x: Tensor, slope: Tensor) -> float:
    """The largest relative error of a gradient against float64."""
    ours = [each.double() for each in gradients(sublayer, x, slope)]
    exact = gradients(sublayer.double(), x.double(), slope.double())
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, exact, strict=True))


def rows(shape: Shape, rounds: int, clock: str) -> Iterator[dict[str, object]]:
    experiment = shape.experiment("bf16")
    length, width = experiment.task.interface().length, experiment.model.d_model
    x = torch.randn(shape.batch, length, width).bfloat16()
    for kind in ("attention", "mlp"):
        sublayers = {}
        for backend in native.possible():
            torch.manual_seed(0)
            with native.using(backend):
                sublayers[backend] = Sublayer(shape, kind)
        slope = torch.randn(x.shape).bfloat16()
        turns = {
            backend: partial(gradients, sublayer, x, slope)
            for backend, sublayer in sublayers.items()
        }
        for backend, taken in in_turns(turns, rounds, x.device, clock, warm_up=2).items():
            yield {
                "benchmark": "kernels", "shape": shape.name, "sublayer": kind,
                "median_ms": round(median(taken), 2),
                "off": round(off(sublayers[backend], x, slope), 4),
                **where(x.device, clock), "kernels": backend,
            }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    if native.library()[0] is None:
        parser.error("no kernels here: no compiler at installation, or no AVX-512 BF16")
    torch.set_num_threads(chosen.threads)
    keep_pages()
    for shape in SHAPES:
        torch.manual_seed(0)
        for row in rows(shape, chosen.rounds, chosen.clock):
            print_row(row)


if __name__ == "__main__":
    main()
