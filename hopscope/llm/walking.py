"""Pairs of questions of one length, walked through a language model layer by layer.

A patch at a layer needs the layers above alone, and of a position what stands behind it: all before
is the own question's, and computed once. So donors are walked from the first word exchanged on, and
what all questions begin with but once. Patches of one place go through the layers together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopscope.circuits.engine import Adapter
from hopscope.llm.pairs import Paired

ROWS = 4_096
"""Tokens that go through a layer at a time, of all patches together."""
MARKS = 3
"""Numbers of an answer: how far it is above third chains' answers for the partner's, for the own;
and its loss among the acceptable ones."""

Stream = Float[Tensor, "batch seq d_model"]
Marks = Float[Tensor, "variant batch mark"]


@dataclass(frozen=True)
class Walked:
    """What stands before each layer and behind the last, and what each head brings."""

    streams: list[Stream]
    mixed: list[Float[Tensor, "batch head seq d_head"]]
    looks: list[Float[Tensor, "batch head reader source"]]
    """For the own question: attention from each role to each of its own chain, where the role
    last stands; empty for donors."""


class Batch:
    """Some pairs of one length, ready to be patched."""

    def __init__(self, adapter: Adapter, pairs: Sequence[Paired], roles: int) -> None:
        self.adapter, self.pairs, self.roles = adapter, pairs, roles
        self.tokens = self._tensor([pair.tokens for pair in pairs])
        self.role = self._tensor([pair.roles for pair in pairs])
        self.chain = self._tensor([pair.chains for pair in pairs])
        self.donors = {
            name: self._tensor([pair.donors[name] for pair in pairs]) for name in pairs[0].donors
        }
        self._given: dict[str, Walked] = {}

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch seq"]:
        return torch.tensor(rows, device=self.adapter.device)

    @cached_property
    def own(self) -> Walked:
        """The own questions; what all begin with is walked once."""
        differs = (self.tokens != self.tokens[:1]).any(0)
        ends = [self.last(role) for role in range(self.roles)]
        first = min(
            first_of(differs), *(int(its[its >= 0].min()) for its in ends if (its >= 0).any())
        )
        begun = self._walked(self.tokens[:1, :first], None, 0) if first else None
        return self._walked(self.tokens, begun, first, looks=True)

    def given(self, name: str) -> Walked:
        """A donor; before the first word exchanged it is the own question."""
        if name not in self._given:
            self._given[name] = self._walked(self.donors[name], self.own, self.exchanged(name))
        return self._given[name]

    def exchanged(self, name: str) -> int:
        """Where the first word of an exchange stands."""
        return first_of((self.tokens != self.donors[name]).any(0))

    def _walked(
        self,
        tokens: Int[Tensor, "batch seq"],
        known: Walked | None,
        first: int,
        looks: bool = False,
    ) -> Walked:
        """From a position on; what is before it is known."""
        adapter, read = self.adapter, tokens.shape[1] - first
        entered = adapter.embed(tokens)[:, first:]
        found = Walked([_behind(known.streams[0] if known else None, first, entered)], [], [])
        for layer in range(adapter.layers):
            x = found.streams[-1]
            heads = adapter.project(layer, x)
            pattern = heads.weights(read)
            mixed = pattern @ heads.values
            out = adapter.finish(layer, x[:, first:], mixed)
            before = (known.mixed[layer], known.streams[layer + 1]) if known else (None, None)
            found.mixed.append(_behind(before[0], first, mixed))
            found.streams.append(_behind(before[1], first, out))
            if looks:
                found.looks.append(self._by_role(pattern))
        return found

    def _by_role(
        self, pattern: Float[Tensor, "batch head read seq"]
    ) -> Float[Tensor, "batch head reader source"]:
        """Attention between roles of the chain asked about, from the last position of each; the
        pattern is that of the last positions.
        """
        length = self.role.shape[1]
        mine = self._one_hot & (self.chain == 0)[:, :, None]
        last = pattern.shape[2] - 1 - mine.flip(1).int().argmax(1)  # [batch, role]
        last = last.clamp_min(0)  # of a role that is not there, any
        rows = pattern.gather(2, last[:, None, :, None].expand(-1, pattern.shape[1], -1, length))
        found: Tensor = rows.float() @ mine.float()[:, None]
        return found * mine.any(1)[:, None, :, None]

    @cached_property
    def _one_hot(self) -> Bool[Tensor, "batch seq role"]:
        found: Tensor = self.role[:, :, None] == torch.arange(self.roles, device=self.role.device)
        return found

    def at(self, role: int) -> Bool[Tensor, "batch seq"]:
        """Where a role stands, in whichever chain."""
        return self._one_hot[:, :, role]

    def last(self, role: int) -> Int[Tensor, "batch"]:
        """Where a role stands last in the chain asked about; -1 where it does not."""
        mine = self.at(role) & (self.chain == 0)
        found: Tensor = self.role.shape[1] - 1 - mine.flip(1).int().argmax(1)
        return torch.where(mine.any(1), found, -1)

    def marks(
        self, x: Float[Tensor, "variant batch one d_model"], names: Sequence[str]
    ) -> Float[Tensor, "variant batch mark"]:
        """What the answers are, in each variant measured for one exchange."""
        logits = self.adapter.unembed(x.flatten(0, 1))[:, -1].float().cpu()
        logits = logits.unflatten(0, x.shape[:2])
        found = torch.zeros(*x.shape[:2], MARKS, dtype=torch.float64)
        for row, pair in enumerate(self.pairs):
            its = logits[:, row]
            loss = its[:, list(pair.answers.acceptable)].logsumexp(-1) - its[:, pair.answers.own]
            for variant, name in enumerate(names):
                one = its[variant]
                third = one[list(pair.answers.thirds(name))].mean()
                found[variant, row, 0] = one[pair.answers.others[name]] - third
                found[variant, row, 1] = one[pair.answers.own] - third
            found[:, row, 2] = loss
        return found

    def clean(self, names: Sequence[str]) -> Marks:
        """The marks of the own questions, for each exchange."""
        return self.marks(self.own.streams[-1][None, :, -1:].repeat(len(names), 1, 1, 1), names)

    def right(self) -> list[bool]:
        """Whether each own question's answer is the likeliest of the acceptable ones."""
        logits = self.adapter.unembed(self.own.streams[-1][:, -1:])[:, -1].float()
        answers = [pair.answers for pair in self.pairs]
        best = [int(logits[n, list(a.acceptable)].argmax()) for n, a in enumerate(answers)]
        return [a.acceptable[n] == a.own for n, a in zip(best, answers, strict=True)]

    def onward(
        self, layer: int, patched: Float[Tensor, "variant batch some d_model"]
    ) -> Float[Tensor, "variant batch one d_model"]:
        """The last position behind the last layer, from streams before a layer that differ from
        the own one at their last positions alone.
        """
        count, _, some, _ = patched.shape
        each = max(1, ROWS // (patched.shape[1] * some))
        return torch.cat([self._onward(layer, part) for part in patched.split(each)] if count
                         else [patched])  # fmt: skip

    def _onward(self, layer: int, patched: Tensor) -> Tensor:
        adapter, (count, batch, some, _) = self.adapter, patched.shape
        x = patched.flatten(0, 1)
        for number in range(layer, adapter.layers):
            before = self.own.streams[number][:, : self.tokens.shape[1] - some]
            whole = torch.cat([before.repeat(count, 1, 1), x], 1)
            read = some if number < adapter.layers - 1 else 1
            heads = adapter.project(number, whole)
            x = adapter.finish(number, whole[:, -read:], heads.weights(read) @ heads.values)
        last: Tensor = x[:, -1:].unflatten(0, (count, batch))
        return last


def first_of(there: Bool[Tensor, "seq"]) -> int:
    """The first position that something holds for; their number, if it holds for none."""
    return int(there.int().argmax()) if bool(there.any()) else len(there)


def _behind(known: Tensor | None, first: int, new: Tensor) -> Tensor:
    """What is new, behind the first positions of what is known: of each question, or of all."""
    if not first:
        return new
    assert known is not None
    before = known[..., :first, :].expand(len(new), *new.shape[1:-2], -1, -1)
    return torch.cat([before, new], -2)


def batches(adapter: Adapter, pairs: Sequence[Paired], roles: int) -> Iterator[Batch]:
    """The pairs by their length, as batches."""
    lengths = sorted({len(pair.tokens) for pair in pairs})
    for length in lengths:
        yield Batch(adapter, [pair for pair in pairs if len(pair.tokens) == length], roles)
