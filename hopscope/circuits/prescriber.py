"""`Prescriber`: computes prescribed attention, the attention rows of a pattern on some examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.examples import Examples
from hopscope.circuits.pattern import AS_IN_MODEL, CARRIED, Pattern, Source, Target
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.memory import Memory

if TYPE_CHECKING:
    from hopscope.circuits.adapters.callback import CallbackModel
    from hopscope.circuits.engine import Adapter

EVEN = ("uniform", *CARRIED)
"""Sources at all positions that a row can see. What the row brings may be replaced afterwards."""
SAME_FOR_ALL = (*EVEN, "itself", "previous")
"""Sources that are the same in every example."""

SpotAttention = tuple[Float[Tensor, "spot seq"], Bool[Tensor, "spot"]]


@dataclass(frozen=True)
class Spots:
    """Some attention rows of some examples; each (example, position) is a *spot*."""

    example: Int[Tensor, "spot"]
    row: Int[Tensor, "spot"]
    """The positions of the rows, counted from the start of the sequence."""
    read: Int[Tensor, "spot"]
    """The same positions, counted from the first position read."""

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def where(cls, mask: Bool[Tensor, "batch seq"], read: int) -> "Spots":
        """The rows where the mask is True; only the last `read` positions are read."""
        example, row = mask.nonzero(as_tuple=True)
        first = mask.shape[-1] - read
        return cls(example, row, row - first)


def _same_for_all(target: Target) -> bool:
    """True if a row with this target has the same attention in every example."""
    return not any(its.when for its in target.each) and all(
        t.where in SAME_FOR_ALL for t in target.every
    )


def prescriber_of(
    adapter: "Adapter | CallbackModel", examples: Examples, parts: int = 1
) -> "Prescriber":
    """The Prescriber for a model on these examples; `parts` of them share the caches' memory."""
    return Prescriber(examples, adapter.causal, getattr(adapter, "windows", {}), parts=parts)


class Prescriber:
    """Computes the attention of patterns on some examples, and caches the rows.

    `windows` maps layers with a sliding window to its width in positions (`of` gives the prescriber
    of a layer); `window` is the width for this prescriber.
    """

    def __init__(
        self,
        examples: Examples,
        causal: bool,
        windows: Mapping[int, int] = MappingProxyType({}),
        window: int | None = None,
        parts: int = 1,
    ) -> None:
        self.examples, self.causal, self.windows, self.parts = examples, causal, windows, parts
        length, device = examples.length, examples.inputs.device
        self.places = torch.arange(length, device=device)
        last = self.places[:, None] if causal else torch.full_like(self.places, length)[:, None]
        self.seen = self.places <= last
        if window is not None:
            self.seen &= self.places > self.places[:, None] - window
        self._within: dict[int, Prescriber] = {}
        self.chain = examples.roles.chain
        self._spots: dict[tuple[Role | None, int], Spots] = {}
        self._drawn = Memory(budget.kept_bytes(device) // parts)

    def of(self, layer: int) -> "Prescriber":
        """The prescriber for a layer, with the layer's window."""
        window = self.windows.get(layer)
        if window is None or window >= self.examples.length:
            return self
        if window not in self._within:
            self._within[window] = Prescriber(
                self.examples, self.causal, window=window, parts=self.parts
            )
        return self._within[window]

    def replaced(
        self, patterns: Mapping[int, Pattern], own: Float[Tensor, "batch head read seq"]
    ) -> Float[Tensor, "batch head read seq"]:
        """The attention of a layer in which some heads follow a pattern; `own` is the attention of
        the model, and stays where only what the head brings is replaced.
        """
        found = own.clone()
        for head, pattern in patterns.items():
            found[:, head] = self.attention_of(pattern.attending, own[:, head], own.shape[-2])
        return found

    def attention_of(
        self, pattern: Pattern, own: Float[Tensor, "batch read seq"] | None, read: int
    ) -> Float[Tensor, "batch read seq"]:
        """The attention of a head that follows the pattern, from the last `read` positions. `own`
        is the model's attention; it may be None if the pattern does not use it.
        """
        ground = pattern.rest
        if not pattern.targets:
            return self._every(ground, own, read)
        targets = {**dict.fromkeys(self.examples.table, ground), **dict(pattern.targets)}
        as_in_model = [len(self.spots(r, read)) for r, its in targets.items() if its == AS_IN_MODEL]
        if own is not None and 2 * sum(as_in_model) > read * len(self.examples):
            ground = AS_IN_MODEL
        others = [r for r, its in targets.items() if its != ground and len(self.spots(r, read))]
        attention = self._every(ground, own, read)
        if others:
            attention = attention.clone()
        for role in others:
            spots = self.spots(role, read)
            rows = self.rows_of(targets[role], role, own, read)
            attention[spots.example, spots.read] = rows.to(attention.dtype)
        return attention

    def _every(
        self, target: Target, own: Float[Tensor, "batch read seq"] | None, read: int
    ) -> Float[Tensor, "batch read seq"]:
        """The attention with one target for all rows."""
        if target == AS_IN_MODEL and own is not None:
            return own
        size = len(self.examples)
        if _same_for_all(target):
            return self._fixed(target, None, read).expand(size, -1, -1)
        every: Tensor = self.rows_of(target, None, own, read).unflatten(0, (size, read))
        return every

    def carried(self, pattern: Pattern, instead: Target, read: int) -> Bool[Tensor, "batch read 1"]:
        """True at the rows, of the last `read` positions, to which what the head brings is
        replaced in this way.
        """
        roles = [role for role in self.examples.table if pattern.of(role) == instead]
        return self.examples.positions(*roles)[:, -read:, None]

    def rows_of(
        self,
        target: Target,
        role: Role | None,
        own: Float[Tensor, "batch read seq"] | None,
        read: int,
    ) -> Float[Tensor, "spot seq"]:
        """The rows of a role (None: all roles) with a target, among the last `read` positions."""
        if target != AS_IN_MODEL:
            return self._fixed(target, role, read)
        assert own is not None
        spots = self.spots(role, read)
        return own[spots.example, spots.read]

    def _fixed(self, target: Target, role: Role | None, read: int) -> Tensor:
        """The rows of a role with a target that does not depend on the model's own attention.

        A row that cannot see its source attends to its own position: in token sequences the source
        may be the destination itself, which has only one role.
        """

        def draw() -> Tensor:
            spots = self.spots(role, read)
            if role is None and _same_for_all(target):  # rows of one example are enough
                rows, here = self.places[-read:], self.places[:read]
                spots = Spots(torch.zeros_like(rows), rows, here)
            rows, possible = self.drawn(target, spots)
            itself = (self.places == spots.row[:, None]).float()
            return torch.where(possible[:, None], rows, itself)

        return self._drawn.get((target, role, read), draw, lambda its: its.nbytes)

    def drawn(self, target: Target, spots: Spots) -> SpotAttention:
        """The attention of these rows with a target, and whether each can see any source."""
        rows, possible = self._alone(target, spots)
        for other in target.otherwise:
            its, can = self._alone(other, spots)
            rows = torch.where(possible[:, None], rows, its)
            possible = possible | can
        return rows, possible

    def _alone(self, target: Target, spots: Spots) -> SpotAttention:
        """The same as `drawn`, without the target's alternatives."""
        if target.written == "table":
            rows = self._from_table(target.sources[0], spots)
            return rows, rows.sum(-1) > 0
        weights = torch.zeros((), device=self.seen.device)
        for source, weight in target.parts:
            at = self.leads(source, spots).float()
            weights = weights + weight * at / at.sum(-1, keepdim=True).clamp_min(1)
        if target.when:
            holds = self.examples.condition(target.when)[spots.example, spots.row]
            weights = weights * holds[:, None]
        total = weights.sum(-1, keepdim=True)
        return weights / total.clamp_min(1e-9), total[..., 0] > 0

    def _from_table(self, source: Source, spots: Spots) -> Float[Tensor, "spot seq"]:
        """Rows of a table, at the positions that each row can see."""
        table = self.examples.table_of(source)
        if source.where == "position":
            rows = table[spots.row]
        else:
            tokens = self.examples.inputs.long()
            new = max(0, int(tokens.max()) + 1 - len(table))  # tokens that are not in the table
            table = torch.nn.functional.pad(table, (0, new, 0, new))
            rows = table[tokens[spots.example, spots.row, None], tokens[spots.example]]
        rows = rows * self.seen[spots.row]
        return rows / rows.sum(-1, keepdim=True).clamp_min(1e-9)

    def leads(self, source: Source, spots: Spots) -> Bool[Tensor, "spot seq"]:
        """True at the positions of a source that each of these rows can see."""
        return self.places_of(source, spots) & self.seen[spots.row]

    def places_of(self, source: Source, spots: Spots) -> Bool[Tensor, "spot seq"]:
        """True at the positions of the source for each of the rows, whether seen or not."""
        at = spots.row[:, None]
        if source.where == "relation":
            return self.examples.masks(source.relation, source.times, (spots.example, spots.row))
        if source.where in SAME_FOR_ALL:
            if source.where in EVEN:
                return torch.ones_like(self.places == at)
            return self.places == (at if source.where == "itself" else at - 1)
        if source.role is None:
            raise CircuitError(f"the source {source.where!r} needs a role")
        of_role = self.examples.positions(source.role)[spots.example]
        if source.where == "all":
            return of_role
        chain = self.chain[spots.example]
        same = chain == chain.gather(1, at)
        return of_role & (same if source.where == "own" else ~same)

    def spots(self, role: Role | None, read: int) -> Spots:
        """The spots of a role (None: of all roles) among the last `read` positions."""
        if (role, read) not in self._spots:
            every = self.places.expand_as(self.chain) >= self.examples.length - read
            mask = every if role is None else every & self.examples.positions(role)
            self._spots[role, read] = Spots.where(mask, read)
        return self._spots[role, read]
