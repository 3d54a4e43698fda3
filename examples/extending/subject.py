"""A subject: the adapter's model, walked layer by layer.

What enters the first layer, who attends to whom, what is carried, what is written, what leaves the
last layer: with these steps only what an ablation changes is computed anew, and what heads carry
can be replaced, too.
"""

import sys
from collections.abc import Sequence

import torch
from adapter import STEPS, TASK, MyTransformer, trained
from hopscope.circuits.layer_steps import attention, prove
from torch import Tensor

from hopscope import discover
from hopscope.circuits import Ablation, Ablator, Carried, exam_of
from hopscope.circuits.adapters import weights_digest


class MySubject:
    """Every step of the model. `read` counts positions from the last one."""

    heads, causal = 1, True

    def __init__(self, model: MyTransformer) -> None:
        self.model, self.layers = model, len(model.layers)

    @property
    def device(self) -> torch.device:
        return self.model.place.weight.device

    def enter(self, inputs: Tensor) -> Tensor:
        return self.model.token(inputs) + self.model.place.weight

    def look(self, number: int, x: Tensor, read: int, heads: Sequence[int]) -> Tensor:
        return self.match(number, x, x, read, heads)

    def values(self, number: int, x: Tensor) -> Tensor:
        its: Tensor = self.model.layers[number].value(self.seen(number, x))
        return its[:, None]  # [batch, head, seq, d_head]

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        return x + self.added(number, mixed)

    def leave(self, x: Tensor) -> Tensor:
        out: Tensor = self.model.out(self.seen(self.layers, x))
        return out

    def answers_at(self) -> int | None:
        return None  # at every position

    def digest(self) -> str:
        return weights_digest(self.model)

    # With the next three, `explain` and `probe` can tell queries, keys and single heads apart.

    def seen(self, number: int, x: Tensor) -> Tensor:
        its = self.model.norm if number == self.layers else self.model.layers[number].norm
        seen: Tensor = its(x)
        return seen

    def match(
        self, number: int, readers: Tensor, sources: Tensor, read: int, heads: Sequence[int]
    ) -> Tensor:
        layer = self.model.layers[number]
        query = layer.query(self.seen(number, readers))[:, None, -read:]
        key = layer.key(self.seen(number, sources))[:, None]
        return attention(query, key, scale=key.shape[-1] ** -0.5)[:, list(heads)]

    def added(self, number: int, mixed: Tensor) -> Tensor:  # noqa: ARG002  (all layers are alike)
        return mixed[:, 0]


def main(steps: int = STEPS) -> None:
    model = trained(steps)
    subject, exam = MySubject(model), exam_of(TASK, 64)
    with torch.no_grad():
        prove(subject, subject.enter(exam.inputs), model(exam.inputs), "MyTransformer")
    circuit = discover(subject, TASK, examples=64, force=steps < STEPS)
    print(circuit)
    off = Ablation.of({(1, 0): Carried("mean")})
    losses = Ablator(subject, exam).losses([Ablation(), off]).mean((1, 2))
    print(f"as it is {losses[0]:.3f}; head 1.0 carries its mean: {losses[1]:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
