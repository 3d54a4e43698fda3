"""An adapter for a class of models, registered once.

The model is attention in plain PyTorch, with two layers of one head. Its forward pass gives its
attention to a callback and uses the return value; `CallbackModel` needs nothing else.
"""

import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hopscope import KHop, discover
from hopscope.circuits import CallbackModel
from hopscope.circuits.adapters import ADAPTERS
from hopscope.tasks import examples, sampler_of

TASK = KHop(hops=1, alphabet=4, length=16)
STEPS, BATCH = 250, 32
Look = Callable[[int, Tensor], Tensor]
"""Takes a layer and its attention [batch, head, query, key]; returns the attention to use."""


def as_it_is(_: int, pattern: Tensor) -> Tensor:
    return pattern


class Attention(nn.Module):
    """One head with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: Tensor, look: Callable[[Tensor], Tensor]) -> Tensor:
        seen = self.norm(x)
        scores = self.query(seen) @ self.key(seen).mT / x.shape[-1] ** 0.5
        past = torch.ones_like(scores, dtype=torch.bool).tril()
        pattern = scores.masked_fill(~past, -torch.inf).softmax(-1)[:, None]  # one head
        out: Tensor = x + look(pattern)[:, 0] @ self.value(seen)
        return out


class MyTransformer(nn.Module):
    """The model as its author wrote it, with one more argument, `look`."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(4, width), nn.Embedding(16, width)
        self.layers = nn.ModuleList(Attention(width) for _ in range(2))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 5)

    def forward(self, tokens: Tensor, look: Look = as_it_is) -> Tensor:
        x = self.token(tokens) + self.place.weight
        for number, layer in enumerate(self.layers):
            x = layer(x, lambda pattern, number=number: look(number, pattern))
        out: Tensor = self.out(self.norm(x))
        return out


def my_transformer(model: MyTransformer) -> CallbackModel:
    """The adapter: the forward function, the module with the weights, and (layers, heads)."""
    return CallbackModel(model, model, shape=(len(model.layers), 1))


ADAPTERS["MyTransformer"] = my_transformer
"""Registered by the name of the class; models that inherit from it also use this adapter."""


def trained(steps: int) -> MyTransformer:
    torch.manual_seed(0)
    model, sampler = MyTransformer(), sampler_of(TASK)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        batch = examples(sampler, 0, torch.arange(BATCH * step, BATCH * (step + 1)))
        loss = cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


def main(steps: int = STEPS) -> None:
    print(discover(trained(steps), TASK, examples=64, force=steps < STEPS))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
