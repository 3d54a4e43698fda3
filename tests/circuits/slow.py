"""Attention as a pattern prescribes it, one position at a time, and a pass with edits: slow, and
obvious; and models that are changed for it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from hopscope.circuits import CallbackModel, Examples, Pattern, Source, Target, target
from hopscope.circuits.pattern import AS_IN_MODEL, ITSELF, MEAN, PREVIOUS, RESAMPLE, UNIFORM
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.transformer import Block

Edit = Callable[[int, Tensor], Tensor]
Edited = Callable[[Edit], Edit]

CHANGES: list[Pattern] = [
    Pattern(rest=UNIFORM),
    Pattern(rest=ITSELF),
    Pattern(rest=PREVIOUS),
    Pattern(((Role("query"), target("own", Role("value"))),)),
    Pattern(rest=MEAN),
    Pattern(rest=RESAMPLE),
    Pattern(((Role("query"), MEAN), (Role("key"), RESAMPLE)), AS_IN_MODEL),
]


def scaled(model: Any, by: float) -> Any:
    """The model with larger weights, by which its attention is far from even."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(by)
    return model


@contextmanager
def hooked(module: Any, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """What enters a module is changed."""
    handle = module.register_forward_pre_hook(lambda _, args: (change(args[0]), *args[1:]))
    try:
        yield
    finally:
        handle.remove()


class Slow:
    """Examples as plain lists, and what a head attends to in the model."""

    def __init__(self, examples: Examples, own: Tensor, causal: bool) -> None:
        self.examples, self.own, self.causal, self.length = examples, own, causal, examples.length
        self.roles = [[examples.table[n] for n in each] for each in examples.roles.role.tolist()]
        self.chains = examples.roles.chain.tolist()

    def row(self, wanted: Target, example: int, row: int) -> Tensor:
        """One row: the first of the targets that leads anywhere, or the position itself."""
        if wanted.written == "model":
            return self.own[example, row]
        for each in wanted.each:
            if each.when and not self.examples.conditions[each.when][example, row]:
                continue
            weights = self.weights(each, example, row)
            if sum(weights):
                return torch.tensor(weights) / sum(weights)
        return torch.eye(self.length)[row]

    def weights(self, wanted: Target, example: int, row: int) -> list[float]:
        """What each position gets under one target alone."""
        seen = range(row + 1 if self.causal else self.length)
        weights = [0.0] * self.length
        for source, share in wanted.parts:
            if wanted.written == "table":
                places = self.examples.inputs[example].tolist()
                at = places if source.where == "token" else range(self.length)
                for key in seen:
                    weights[key] = float(self.examples.tables[source][at[row], at[key]])
                continue
            hits = [key for key in seen if self.hits(source, example, row, key)]
            for key in hits:
                weights[key] += share / len(hits)
        return weights

    def hits(self, source: Source, example: int, row: int, key: int) -> bool:
        if source.where == "relation":
            leads = self.examples.relations[source.relation][example]
            return key in followed(leads, row, source.times)
        own = self.chains[example][row] == self.chains[example][key]
        named = self.roles[example][key] == source.role
        return {
            "own": named and own,
            "all": named,
            "others": named and not own,
            "previous": key == row - 1,
            "itself": key == row,
            "uniform": True,
        }[source.where]


def slow_attention(
    pattern: Pattern, examples: Examples, own: Tensor, causal: bool = True
) -> Tensor:
    """What one head attends to [batch, seq, seq]; `own` is what it attends to in the model."""
    slow = Slow(examples, own, causal)
    return torch.stack([
        torch.stack([slow.row(pattern.of(role), n, row) for row, role in enumerate(roles)])
        for n, roles in enumerate(slow.roles)
    ])  # fmt: skip


def followed(leads: Tensor, row: int, times: int) -> set[int]:
    """Where a relation of one example leads from a row: to a position, or to a set of them."""
    here = {row}
    for _ in range(times):
        if leads.ndim == 1:
            here = {int(leads[place]) for place in here} - {-1}
        else:
            here = {key for place in here for key in leads[place].nonzero()[:, 0].tolist()}
    return here


def walked(model: Transformer, inputs: Tensor, attention: Edit, heads: Edit) -> Tensor:
    """The outputs of one pass whose attention and whose heads are edited."""
    x = model.enter(inputs)
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        pattern = attention(layer, block.pattern(x, inputs.shape[1], range(model.config.heads)))
        x = block.write(x, heads(layer, pattern @ block.values(x)))
    return model.leave(x)


def whole(
    model: Transformer, edited: Edited = lambda attention: attention,
    shape: tuple[int, int] = (3, 2), *, everywhere: bool = False, **more: Any,
) -> CallbackModel:  # fmt: skip
    """A module that makes something of the edit that it is given, and answers at the positions that
    are read, or everywhere.
    """

    def forward(inputs: Tensor, attention: Edit) -> Tensor:
        every: Tensor = model(inputs, attention=edited(attention), read=inputs.shape[1])
        return every if everywhere else every[:, -model.interface.read :]

    return CallbackModel(forward, model, shape, **more)
