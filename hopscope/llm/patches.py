"""What is patched in a language model: streams by role, rows of heads, all but a circuit."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.llm.walking import MARKS, ROWS, Batch, Marks, first_of

Row = tuple[int, int, int]
"""What one head brings to one role: layer, head, number of the role."""


def by_role(
    batch: Batch, layers: Sequence[int], names: Sequence[str]
) -> Float[Tensor, "name role layer batch mark"]:
    """How answers move if one role's stream before a layer is the donor's (the number of layers:
    behind the last).
    """
    found = torch.zeros(len(names), batch.roles, len(layers), len(batch.pairs), MARKS).double()
    for column, layer in enumerate(layers):
        for role in range(batch.roles):
            found[:, role, column] = at_role(batch, layer, role, names)
    return found


def at_role(
    batch: Batch, layer: int, role: int, names: Sequence[str]
) -> Float[Tensor, "name batch mark"]:
    """How answers move if one role's stream before one layer is the donor's."""
    found = torch.zeros(len(names), len(batch.pairs), MARKS).double()
    at, own = batch.at(role)[:, :, None], batch.own.streams[layer]
    patched = [torch.where(at, batch.given(name).streams[layer], own) for name in names]
    changed = [(its != own).any(-1).any(0) for its in patched]
    if some := [n for n, its in enumerate(changed) if its.any()]:
        first = min(int(changed[n].int().argmax()) for n in some)
        end = batch.onward(layer, torch.stack([patched[n] for n in some])[:, :, first:])
        its_names = [names[n] for n in some]
        found[some] = batch.marks(end, its_names) - batch.clean(its_names)
    return found


def by_head(
    batch: Batch, layer: int, role: int, names: Sequence[str]
) -> Float[Tensor, "name head batch mark"]:
    """How answers move if what one head brings to a role is the donor's."""
    clean, heads = batch.clean(names), batch.adapter.heads
    at = batch.at(role)
    first = int(at.int().argmax(1)[at.any(1)].min())
    x, own = batch.own.streams[layer][:, first:], batch.own.mixed[layer][:, :, first:]
    marked = []
    for number, name in enumerate(names):
        theirs = batch.given(name).mixed[layer][:, :, first:]
        patched = []
        for head in range(heads):
            mixed = own.clone()
            mixed[:, head] = torch.where(at[:, first:, None], theirs[:, head], own[:, head])
            patched.append(batch.adapter.finish(layer, x, mixed))
        end = batch.onward(layer + 1, torch.stack(patched))
        marked.append(batch.marks(end, [name] * heads) - clean[number])
    return torch.stack(marked)


@dataclass(frozen=True)
class Rerun:
    """Which rows are the donor's in some variants, question by question; all others are computed
    anew, from the first layer and position on that a variant changes.
    """

    donor: Bool[Tensor, "variant batch layer head role"]

    def marks(self, batch: Batch, name: str) -> Marks:
        """How the answers move, in each variant."""
        by_layer = self.donor.flatten(3).any(-1).any(1)  # [variant, layer]
        found = torch.zeros(len(self.donor), len(batch.pairs), MARKS).double()
        begins = [first_of(its) for its in by_layer]
        for begin in sorted({its for its in begins if its < batch.adapter.layers}):
            some = [n for n, its in enumerate(begins) if its == begin]
            for part in torch.tensor(some).split(max(1, ROWS // batch.tokens.numel())):
                end = self._rerun(batch, name, self.donor[part], begin)
                its_names = [name] * len(part)
                found[part] = batch.marks(end, its_names) - batch.clean([name])
        return found

    def _rerun(self, batch: Batch, name: str, donor: Tensor, begin: int) -> Tensor:
        adapter, count, length = batch.adapter, len(donor), batch.tokens.shape[1]
        places = batch.role[None, :, None].expand(count, -1, adapter.heads, -1)
        there = donor.flatten(2, 3).any(2).any(0).gather(-1, batch.role)  # [batch, seq]
        first = min(max(batch.exchanged(name), first_of(there.any(0))), length - 1)
        x = batch.own.streams[begin][:, first:].repeat(count, 1, 1)
        for layer in range(begin, adapter.layers):
            before = batch.own.streams[layer][:, :first].repeat(count, 1, 1)
            whole = torch.cat([before, x], 1)
            read = length - first if layer < adapter.layers - 1 else 1
            heads = adapter.project(layer, whole)
            mixed = heads.weights(read) @ heads.values
            taken = donor[:, :, layer].gather(-1, places).flatten(0, 1)[:, :, -read:, None]
            theirs = batch.given(name).mixed[layer][:, :, -read:].repeat(count, 1, 1, 1)
            x = adapter.finish(layer, whole[:, -read:], torch.where(taken, theirs, mixed))
        last: Tensor = x[:, -1:].unflatten(0, (count, -1))
        return last


def proofs(
    shape: tuple[int, int, int], rows: Sequence[Row], draws: int, seed: int
) -> Bool[Tensor, "variant layer head role"]:
    """Which rows are the donor's: in the circuit; in all else; everywhere; in as many random rows
    of the same layers and roles, draw by draw.
    """
    circuit = torch.zeros(shape, dtype=torch.bool)
    for row in rows:
        circuit[row] = True
    variants = [circuit, ~circuit, torch.ones_like(circuit)]
    for draw in range(draws):
        variants.append(torch.zeros_like(circuit))
        for row in others(shape, rows, Random(seed * 1_009 + draw)):  # noqa: S311
            variants[-1][row] = True
    return torch.stack(variants)


def met(index: int, draws: int, each: int) -> list[int]:
    """The variants that a question meets: all that are not drawn, and the next of the draws.

    >>> met(0, 4, 2), met(1, 4, 2), met(2, 4, 2)
    ([0, 1, 2, 3, 4], [0, 1, 2, 5, 6], [0, 1, 2, 3, 4])
    """
    return [0, 1, 2, *sorted(3 + (index * each + n) % draws for n in range(each))]


def others(shape: tuple[int, int, int], rows: Sequence[Row], rng: Random) -> list[Row]:
    """As many rows of other heads, drawn layer by layer among the roles that the circuit's rows
    have there; all there are, where there are fewer.
    """
    found = []
    for layer in sorted({row[0] for row in rows}):
        mine = [row for row in rows if row[0] == layer]
        readers = sorted({role for _, _, role in mine})
        free = [
            (layer, head, role)
            for head in range(shape[1])
            for role in readers
            if (layer, head, role) not in mine
        ]
        found += rng.sample(free, min(len(mine), len(free)))
    return found
