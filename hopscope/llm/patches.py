"""What is patched in a language model: streams by role, rows of heads, all but a circuit."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.llm.walking import MARKS, Batch, Marks

Row = tuple[int, int, int]
"""What one head brings to one role: layer, head, number of the role."""


def by_role(
    batch: Batch, layers: Sequence[int], names: Sequence[str]
) -> Float[Tensor, "name role layer batch mark"]:
    """How answers move if one role's stream before a layer is the donor's (the number of layers:
    behind the last).
    """
    clean = batch.clean(names)
    found = torch.zeros(len(names), batch.roles, len(layers), len(batch.pairs), MARKS).double()
    for column, layer in enumerate(layers):
        own = batch.own.streams[layer]
        for role in range(batch.roles):
            at = batch.at(role)
            theirs = [batch.given[name].streams[layer] for name in names]
            changed = [bool((at[:, :, None] & (own != its)).any()) for its in theirs]
            some = [n for n, its in enumerate(changed) if its]
            if not some:
                continue
            first = int(at.int().argmax(1)[at.any(1)].min())
            patched = torch.stack([torch.where(at[:, :, None], theirs[n], own) for n in some])
            end = batch.onward(layer, patched[:, :, first:])
            its_names = [names[n] for n in some]
            found[some, role, column] = batch.marks(end, its_names) - clean[some]
    return found


def by_head(
    batch: Batch, layer: int, role: int, names: Sequence[str]
) -> Float[Tensor, "name head batch mark"]:
    """How answers move if what one head brings to a role is the donor's."""
    clean, heads = batch.clean(names), batch.subject.heads
    at = batch.at(role)
    first = int(at.int().argmax(1)[at.any(1)].min())
    x, own = batch.own.streams[layer][:, first:], batch.own.mixed[layer][:, :, first:]
    marked = []
    for number, name in enumerate(names):
        theirs = batch.given[name].mixed[layer][:, :, first:]
        patched = []
        for head in range(heads):
            mixed = own.clone()
            mixed[:, head] = torch.where(at[:, first:, None], theirs[:, head], own[:, head])
            patched.append(batch.subject.write(layer, x, mixed))
        end = batch.onward(layer + 1, torch.stack(patched))
        marked.append(batch.marks(end, [name] * heads) - clean[number])
    return torch.stack(marked)


@dataclass(frozen=True)
class Rerun:
    """Which rows are the donor's in some variants; all others are computed anew."""

    donor: Bool[Tensor, "variant layer head role"]

    def marks(self, batch: Batch, name: str) -> Marks:
        """How the answers move, in each variant."""
        subject, count = batch.subject, len(self.donor)
        x = batch.own.streams[0].repeat(count, 1, 1)
        for layer in range(subject.layers):
            pattern = subject.look(layer, x, x.shape[1], range(subject.heads))
            mixed = pattern @ subject.values(layer, x)
            taken = self.donor[:, layer][:, :, batch.role].transpose(1, 2).flatten(0, 1)
            theirs = batch.given[name].mixed[layer].repeat(count, 1, 1, 1)
            x = subject.write(layer, x, torch.where(taken[..., None], theirs, mixed))
        end = x[:, -1:].unflatten(0, (count, -1))
        return batch.marks(end, [name] * count) - batch.clean([name])


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
