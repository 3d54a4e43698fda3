"""Your own model as three functions: embed, block, unembed.

A block calls `attend` in place of `scaled_dot_product_attention`. Then an ablation computes only
what changes, and the outputs of heads can also be replaced.
"""

import sys

import torch
from adapter import STEPS, TASK, MyTransformer, trained
from torch import Tensor

from hopscope import discover
from hopscope.circuits import Ablation, Ablator, BlockAdapter, Pattern, examples_of, target
from hopscope.circuits.adapters.blocks import BlockAttend


def my_blocks(model: MyTransformer) -> BlockAdapter:
    """The adapter; on first use, its outputs are compared with the model's own."""

    def embed(tokens: Tensor) -> Tensor:
        return model.token(tokens) + model.place.weight

    def block(number: int, x: Tensor, attend: BlockAttend) -> Tensor:
        layer = model.layers[number]
        seen = layer.norm(x)[:, None]  # [row, head, position, width]
        out: Tensor = x + attend(layer.query(seen), layer.key(seen), layer.value(seen))[:, 0]
        return out

    def unembed(x: Tensor) -> Tensor:
        out: Tensor = model.out(model.norm(x))
        return out

    shape = (len(model.layers), 1)
    return BlockAdapter(embed, block, unembed, module=model, shape=shape, model=model)


def main(steps: int = STEPS) -> None:
    adapter, examples = my_blocks(trained(steps)), examples_of(TASK, 64)
    print(discover(adapter, TASK, examples=64, force=steps < STEPS))
    with torch.no_grad():
        off = Ablation.of({(1, 0): Pattern(rest=target("mean"))})
        losses = Ablator(adapter, examples).losses([Ablation(), off]).mean((1, 2))
    print(f"the model {losses[0]:.3f}; head 1.0 brings its mean: {losses[1]:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
