"""Patch pairs of questions of one length in a language model; measure how far answers follow.

After a patch, only later layers and later positions are computed again; all other activations are
the own question's, and are computed once. Patches at one place pass through the layers together.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import cached_property
from itertools import product
from random import Random
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.adapters import DecoderAdapter, adapter_of
from hopscope.circuits.engine import Projected, Recorded, record
from hopscope.errors import CircuitError, LmError
from hopscope.lm.model import LanguageModel, in_memory
from hopscope.lm.pairs import Paired

T = TypeVar("T")
PIECE = 4
"""Number of questions that are measured together, and between two commits."""
CALLS = 8
"""Patches computed at once, in multiples of the bytes of a usual call: larger calls read the
weights of a layer less often."""
KEYS = 4
"""Memory of such a call for keys, values and the keys in float32, in tensors of the keys' size."""


class Mark(IntEnum):
    """Indices of the numbers that are measured for an answer."""

    FOLLOWS = 0
    """The logit of the partner's answer, minus the mean of those of third chains."""
    OWN = 1
    """The logit of the own answer, minus the same mean."""
    LOSS = 2
    """The loss among the acceptable answers."""
    KL = 3
    """The KL divergence of the next token from the own question's, in nats."""
    SAME = 4
    """1 if the likeliest token is that of the own question, else 0."""


AttentionRow = tuple[int, int, int]
"""An attention row: layer, head, index of the role."""
Marks = Float[Tensor, "variant batch mark"]


class PairBatch:
    """Pairs of one length, and their forward passes through the model."""

    def __init__(self, adapter: DecoderAdapter, pairs: Sequence[Paired], roles: int) -> None:
        self.adapter, self.pairs, self.roles = adapter, pairs, roles
        self.tokens = self._tensor([pair.tokens for pair in pairs])
        self.role = self._tensor([pair.roles for pair in pairs])
        self.chain = self._tensor([pair.chains for pair in pairs])
        self.donors = {
            name: self._tensor([pair.donors[name] for pair in pairs]) for name in pairs[0].donors
        }
        self._given: dict[str, Recorded] = {}

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch seq"]:
        return torch.tensor(rows, device=self.adapter.device)

    @cached_property
    def own(self) -> Recorded:
        """The forward pass over the own questions."""
        return record(self.adapter, self.tokens)

    @cached_property
    def heads(self) -> list[Projected]:
        """The heads of every layer in this pass."""
        return [self.adapter.project(n, x) for n, x in enumerate(self.own.streams[:-1])]

    def given(self, name: str) -> Recorded:
        """Return the forward pass over the donors of an exchange (cached)."""
        if name not in self._given:
            found = record(self.adapter, self.donors[name])
            self._given[name] = replace(found, values=[], weights=[])  # large and unused
        return self._given[name]

    def these(self, rows: Sequence[AttentionRow]) -> Bool[Tensor, "layer head role"]:
        """True at these attention rows."""
        shape = (self.adapter.layers, self.adapter.heads, self.roles)
        found = torch.zeros(shape, dtype=torch.bool)
        for row in rows:
            found[row] = True
        return found

    @cached_property
    def _one_hot(self) -> Bool[Tensor, "batch seq role"]:
        return torch.nn.functional.one_hot(self.role, self.roles).bool()

    @cached_property
    def lasts(self) -> Int[Tensor, "batch role"]:
        """The last position of each role in the chain asked about; -1 if there is none."""
        mine = self._one_hot & (self.chain == 0)[:, :, None]
        found: Tensor = self.role.shape[1] - 1 - mine.flip(1).int().argmax(1)
        return torch.where(mine.any(1), found, -1)

    def attention(
        self, layer: int, chain: int = 0
    ) -> Float[Tensor, "batch head destination source"]:
        """Return the attention from the last position of each role in the chain asked about, to the
        roles of a chain (0: the same chain).
        """
        weights, there = self.own.weights[layer], self._one_hot & (self.chain == chain)[:, :, None]
        last = weights.take_along_dim(self.lasts.clamp_min(0)[:, None, :, None], 2)
        found: Tensor = last.float() @ there.float()[:, None]
        return found * (self.lasts >= 0)[:, None, :, None]

    def moved(self, x: Float[Tensor, "variant batch one d_model"], names: Sequence[str]) -> Marks:
        """Return the change of the answers' `Mark` numbers; variant n is measured by names[n]."""
        return self.marks(self.logs(x), names) - self.clean(names)

    def marks(
        self, logs: Float[Tensor, "variant batch vocabulary"], names: Sequence[str] = ()
    ) -> Marks:
        """Return the `Mark` numbers of the answers; without `names`, FOLLOWS and OWN are 0."""
        found = torch.zeros(*logs.shape[:2], len(Mark), dtype=torch.float64)
        found[..., Mark.KL] = (self.model.exp() * (self.model - logs)).sum(-1).cpu()
        found[..., Mark.SAME] = (logs.argmax(-1) == self.model.argmax(-1)).cpu()
        for row, pair in enumerate(self.pairs):
            scores = logs[:, row, list(pair.acceptable)].double().cpu()
            at = pair.acceptable.index
            own = scores[:, at(pair.answer)]
            found[:, row, Mark.LOSS] = scores.logsumexp(-1) - own
            for variant, name in enumerate(names):
                third = scores[variant, [at(each) for each in pair.thirds(name)]].mean()
                other = scores[variant, at(pair.others[name])]
                found[variant, row, Mark.FOLLOWS] = other - third
                found[variant, row, Mark.OWN] = own[variant] - third
        return found

    def logs(self, x: Float[Tensor, "variant batch one d_model"]) -> Tensor:
        """Return the log-probabilities of the next token."""
        logits = self.adapter.unembed(x[:, :, -1:].flatten(0, 1))[:, -1].float()
        found: Tensor = logits.log_softmax(-1).unflatten(0, x.shape[:2])
        return found

    @cached_property
    def model(self) -> Float[Tensor, "batch vocabulary"]:
        """The log-probabilities of the next token without a patch."""
        return self.logs(self.own.streams[-1][None])[0]

    @cached_property
    def _clean(self) -> dict[str, Marks]:
        return {name: self.marks(self.model[None], [name]) for name in self.pairs[0].others}

    def clean(self, names: Sequence[str]) -> Marks:
        """Return the `Mark` numbers without a patch, for each exchange."""
        return torch.cat([self._clean[name] for name in names])

    def right(self) -> list[bool]:
        """For each question, whether its own answer is the likeliest of the acceptable ones."""
        return [
            pair.acceptable[int(logs[list(pair.acceptable)].argmax())] == pair.answer
            for pair, logs in zip(self.pairs, self.model, strict=True)
        ]

    def onward(
        self,
        layer: int,
        patched: Float[Tensor, "variant batch some d_model"],
        replaced: Callable[[int, slice, Tensor], Tensor] = lambda _layer, _part, brought: brought,
    ) -> Float[Tensor, "variant batch one d_model"]:
        """Compute from patched streams before `layer` to the end; return the last position.

        `patched` are the streams at the last positions; at all earlier positions they are the own
        question's. `replaced` may change the outputs of heads; it gets the layer, the variants
        computed together (a slice, as many as fit in memory) and the outputs.
        """
        adapter, (count, batch, some, _) = self.adapter, patched.shape
        one = budget.WIDTHS * patched[:1].nbytes + KEYS * self.own.brought[0].nbytes
        size = max(1, CALLS * budget.call_bytes(patched.device) // one)
        ends = []
        for at in range(0, count, size):
            part = slice(at, at + size)
            x = patched[part].flatten(0, 1)
            for number in range(layer, adapter.layers):
                heads = adapter.project_after(number, x, self.heads[number])
                read = some if number < adapter.layers - 1 else 1
                brought = replaced(number, part, heads.weights(read) @ heads.values)
                x = adapter.finish(number, x[:, -read:], brought)
            ends.append(x[:, -1:].unflatten(0, (-1, batch)))
        return torch.cat(ends)


def decoder(local: LanguageModel) -> DecoderAdapter:
    """Return the engine's adapter of the language model. Raises LmError if it cannot be patched."""
    try:
        adapter = adapter_of(local.model)
        assert isinstance(adapter, DecoderAdapter)
        adapter.embed(torch.zeros(1, 1, dtype=torch.long, device=local.device))
    except CircuitError as error:  # its advice is for models in Python
        why = str(error).partition(": ")[0]
        raise LmError(
            f"{why}: take a model whose heads can be patched (`hopscope lm ask` can ask this one)"
        ) from error
    return adapter


def first_of(there: Bool[Tensor, "seq"]) -> int:
    """Return the first True position; the number of positions if there is none."""
    return int(there.int().argmax()) if bool(there.any()) else len(there)


def in_batches(
    adapter: DecoderAdapter,
    pairs: Sequence[Paired],
    roles: int,
    measure: Callable[[PairBatch], Sequence[T]],
) -> list[T]:
    """Call `measure` on batches of pairs of one length with the same donors; return all results in
    order of the pairs.
    """
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        alike[len(pair.tokens), *pair.donors].append(number)
    batches = [
        some[first : first + PIECE]
        for some in alike.values()
        for first in range(0, len(some), PIECE)
    ]

    def work(numbers: list[int]) -> Sequence[T]:
        return measure(PairBatch(adapter, [pairs[n] for n in numbers], roles))

    return in_memory(batches, work, [len(pair.tokens) for pair in pairs], adapter.device)


def at_role(
    batch: PairBatch, layer: int, role: int, names: Sequence[str]
) -> Float[Tensor, "name batch mark"]:
    """Return how answers move if the stream at one role before one layer is taken from the donor.

    `layer` may be the number of layers (after the last). One entry for each exchange in `names`.
    """
    found = torch.zeros(len(names), len(batch.pairs), len(Mark)).double()
    at, own = (batch.role == role)[:, :, None], batch.own.streams[layer]
    patched = [torch.where(at, batch.given(name).streams[layer], own) for name in names]
    changed = [(stream != own).any(-1).any(0) for stream in patched]
    if some := [n for n, there in enumerate(changed) if there.any()]:
        first = min(first_of(changed[n]) for n in some)
        end = batch.onward(layer, torch.stack([patched[n] for n in some])[:, :, first:])
        exchanged = [names[n] for n in some]
        found[some] = batch.moved(end, exchanged)
    return found


def interchanged(
    batch: PairBatch, name: str, donor: Bool[Tensor, "variant batch layer head role"]
) -> Marks:
    """Return how answers move, in each variant, if these attention rows are taken from the donor.

    All others are computed again, from the first changed layer and position on.
    """
    found = torch.zeros(len(donor), len(batch.pairs), len(Mark)).double()
    word = first_of((batch.tokens != batch.donors[name]).any(0))
    begins = [first_of(layers) for layers in donor.flatten(3).any(-1).any(1)]
    for begin in sorted({first for first in begins if first < batch.adapter.layers}):
        some = [n for n, first in enumerate(begins) if first == begin]
        rows = donor[some].to(batch.tokens.device)
        there = rows.flatten(2, 3).any(2).any(0).gather(-1, batch.role)  # [batch, seq]
        first = max(word, first_of(there.any(0)))
        own = batch.own.streams[begin][:, min(first, batch.tokens.shape[1] - 1) :]
        end = batch.onward(begin, own.expand(len(some), -1, -1, -1), _donated(batch, name, rows))
        found[some] = batch.moved(end, [name] * len(some))
    return found


def _donated(
    batch: PairBatch, name: str, rows: Bool[Tensor, "variant batch layer head role"]
) -> Callable[[int, slice, Tensor], Tensor]:
    """Return a function that replaces the outputs of heads at these rows by the donor's."""

    def replaced(layer: int, part: slice, brought: Tensor) -> Tensor:
        read = brought.shape[2]
        taken = rows[part, :, layer].take_along_dim(batch.role[None, :, None], -1)
        taken = taken.flatten(0, 1)[:, :, -read:, None]
        theirs = batch.given(name).brought[layer][:, :, -read:]
        return torch.where(taken, theirs.repeat(len(taken) // len(theirs), 1, 1, 1), brought)

    return replaced


def random_rows(
    layers: int, heads: int, rows: Sequence[AttentionRow], rng: Random
) -> list[AttentionRow]:
    """Draw as many other attention rows, layer by layer, at the roles of the given rows there.

    If a layer has too few, the rest is drawn from all layers. Empty if the model has too few.
    """
    others = other_rows(layers, heads, rows)
    found: list[AttentionRow] = []
    for layer in sorted({row[0] for row in rows}):
        mine = [row for row in rows if row[0] == layer]
        roles = {role for _, _, role in mine}
        free = [row for row in others if row[0] == layer and row[2] in roles]
        found += rng.sample(free, min(len(mine), len(free)))
    left = [row for row in others if row not in found]
    lacking = len(rows) - len(found)
    return [] if lacking > len(left) else found + rng.sample(left, lacking)


def other_rows(layers: int, heads: int, rows: Sequence[AttentionRow]) -> list[AttentionRow]:
    """Return all other attention rows of the model at the roles of these rows."""
    roles = sorted({role for _, _, role in rows})
    every = product(range(layers), range(heads), roles)
    return [row for row in every if row not in rows]


def lens(batch: PairBatch, layers: Sequence[int]) -> Float[Tensor, "symbol role layer batch two"]:
    """Return the logit lens (nostalgebraist 2020) of each symbol at the last position of each role.

    The two numbers are the symbol's probability among the words of all chains, and its rank in the
    vocabulary (0: the first; behind all tokens with an equal logit, which half precisions often
    have). NaN where a role does not occur.
    """
    symbols = list(batch.pairs[0].candidates)
    found = torch.full((len(symbols), batch.roles, len(layers), len(batch.pairs), 2), torch.nan)
    for column, layer in enumerate(layers):
        x = batch.own.streams[layer].take_along_dim(batch.lasts.clamp_min(0)[:, :, None], 1)
        logits = batch.adapter.unembed(x).float()
        for row, pair in enumerate(batch.pairs):
            for number, symbol in enumerate(symbols):
                words = list(pair.candidates[symbol])
                own = logits[row, :, words[0]]
                found[number, :, column, row, 0] = logits[row][:, words].softmax(-1)[:, 0].cpu()
                found[number, :, column, row, 1] = (logits[row] >= own[:, None]).sum(-1).cpu() - 1
    return torch.where((batch.lasts.T.cpu() >= 0)[None, :, None, :, None], found, torch.nan)
