"""Mechanisms become attention: an aim, painted onto the positions of an exam's examples."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.exam import Exam
from hopscope.circuits.mechanism import AS_IS, FROM_MODEL, Aim, Mechanism, Target
from hopscope.errors import CircuitError
from hopscope.facts import Role

SAME_FOR_ALL = ("uniform", "itself", "previous")
"""Targets that are the same in every example."""

Drawn = tuple[Float[Tensor, "spot seq"], Bool[Tensor, "spot"]]
Kinds = tuple[Int[Tensor, "batch read"], Int[Tensor, "kind"]]


@dataclass(frozen=True)
class Spots:
    """Some rows of attention of some examples, one *spot* for each."""

    example: Int[Tensor, "spot"]
    row: Int[Tensor, "spot"]
    """The positions of the rows, counted from the first of the sequence."""
    read: Int[Tensor, "spot"]
    """The same positions, counted from the first that is read."""
    slot: Int[Tensor, "spot"]
    """A number for each row; no two rows of an example have the same."""
    width: int
    """How many slots there are."""

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def where(cls, mask: Bool[Tensor, "batch seq"], read: int) -> "Spots":
        """The rows that are True; the last `read` are read."""
        example, row = mask.nonzero(as_tuple=True)
        number = mask.cumsum(-1)
        width = int(number[:, -1].max()) if mask.numel() else 0
        first = mask.shape[-1] - read
        return cls(example, row, row - first, number[example, row] - 1, width)

    @classmethod
    def of_all(cls, several: "list[Spots]") -> "Spots":
        """Rows of one kind after the other; none may be of two kinds."""
        ends = [0]
        for spots in several:
            ends.append(ends[-1] + spots.width)
        slots = [spots.slot + end for spots, end in zip(several, ends, strict=False)]
        parts = zip(*((spots.example, spots.row, spots.read) for spots in several), strict=True)
        example, row, read = (torch.cat(part) for part in parts)
        return cls(example, row, read, torch.cat(slots), ends[-1])


def _same_for_all(aim: Aim) -> bool:
    """True if a row looks the same in every example."""
    return not any(its.when for its in aim.each) and all(t.where in SAME_FOR_ALL for t in aim.every)


class Painter:
    """Draws the attention of mechanisms for one exam, and keeps what it has drawn."""

    def __init__(self, exam: Exam, causal: bool) -> None:
        self.exam = exam
        length, device = exam.length, exam.inputs.device
        self.places = torch.arange(length, device=device)
        last = self.places[:, None] if causal else torch.full_like(self.places, length)[:, None]
        self.seen = self.places <= last
        self.chain = exam.roles.chain
        self._spots: dict[tuple[Role | None, int], Spots] = {}
        self._kinds: dict[tuple[Role, int], Kinds] = {}
        self._drawn = budget.Kept(budget.times(device) * budget.DRAWN_BYTES)

    def attention(
        self, mechanism: Mechanism, own: Float[Tensor, "batch read seq"]
    ) -> Float[Tensor, "batch read seq"]:
        """The attention of a head that follows the mechanism; `own` is its own in the model."""
        return self.painted(mechanism, own, own.shape[-2])

    def painted(
        self, mechanism: Mechanism, own: Float[Tensor, "batch read seq"] | None, read: int
    ) -> Float[Tensor, "batch read seq"]:
        """The attention of a head that follows the mechanism, from the last `read` positions; `own`
        may be None for a mechanism that does not depend on the model.
        """
        ground = mechanism.rest
        if not mechanism.aims:
            return self._every(ground, own, read)
        kinds = {**dict.fromkeys(self.exam.table, ground), **dict(mechanism.aims)}
        if own is not None and self._most_as_is(kinds, read):
            ground = AS_IS
        others = [r for r, aim in kinds.items() if aim != ground and len(self.spots(r, read))]
        pattern = self._every(ground, own, read)
        if others:
            pattern = pattern.clone()
        for role in others:
            spots = self.spots(role, read)
            rows = self.rows_of(kinds[role], role, own, read)
            pattern[spots.example, spots.read] = rows.to(pattern.dtype)
        return pattern

    def painted_rows(
        self,
        mechanism: Mechanism,
        roles: Sequence[Role],
        own: Float[Tensor, "batch read seq"] | None,
        read: int,
    ) -> Float[Tensor, "spot seq"]:
        """The attention of a head that follows the mechanism, in the rows of some roles alone."""
        return torch.cat([self.rows_of(mechanism.of(role), role, own, read) for role in roles])

    def _most_as_is(self, kinds: dict[Role, Aim], read: int) -> bool:
        as_is = sum(len(self.spots(role, read)) for role, aim in kinds.items() if aim == AS_IS)
        return 2 * as_is > read * len(self.exam)

    def _every(
        self, aim: Aim, own: Float[Tensor, "batch read seq"] | None, read: int
    ) -> Float[Tensor, "batch read seq"]:
        """Every row under one aim."""
        if aim == AS_IS and own is not None:
            return own
        size = len(self.exam)
        if _same_for_all(aim):
            return self._fixed(aim, None, read).expand(size, -1, -1)
        every: Tensor = self.rows_of(aim, None, own, read).unflatten(0, (size, read))
        return every

    def rows_of(
        self, aim: Aim, role: Role | None, own: Float[Tensor, "batch read seq"] | None, read: int
    ) -> Float[Tensor, "spot seq"]:
        """The rows of a role (None: of all) under an aim, of the last `read` positions."""
        target = aim.targets[0]
        if target.where not in FROM_MODEL:
            return self._fixed(aim, role, read)
        assert own is not None
        spots = self.spots(role, read)
        if target.where == "model":
            return own[spots.example, spots.read]
        if target.role is None:
            return own.mean(0)[spots.read]
        return self._placed(target.role, spots, own)

    def _fixed(self, aim: Aim, role: Role | None, read: int) -> Tensor:
        """The rows of a role, where they do not depend on the model.

        Who cannot see its target stays where it is: in token sequences the target may be the
        reader itself, which has only one role.
        """
        found = self._drawn.get((aim, role, read))
        if found is None:
            same = role is None and _same_for_all(aim)
            spots = self._one_example(read) if same else self.spots(role, read)
            rows, possible = self.drawn(aim, spots)
            itself = (self.places == spots.row[:, None]).float()
            found = torch.where(possible[:, None], rows, itself)
            self._drawn.put((aim, role, read), found)
        return found

    def rows(self, aim: Aim) -> tuple[Float[Tensor, "batch seq seq"], Bool[Tensor, "batch seq"]]:
        """What every row looks like under the aim, and whether it sees any target at all."""
        shape = (len(self.exam), self.exam.length)
        rows, possible = self.drawn(aim, self.spots(None, self.exam.length))
        return rows.unflatten(0, shape), possible.unflatten(0, shape)

    def drawn(self, aim: Aim, spots: Spots) -> Drawn:
        """What these rows look like under the aim, and whether they see any target at all."""
        rows, possible = self._alone(aim, spots)
        for other in aim.otherwise:
            its, can = self._alone(other, spots)
            rows = torch.where(possible[:, None], rows, its)
            possible = possible | can
        return rows, possible

    def _alone(self, aim: Aim, spots: Spots) -> Drawn:
        """Rows under one aim alone, and where it leads somewhere; the aims that may take its place
        are ignored.
        """
        weights = torch.zeros((), device=self.seen.device)
        for target, weight in aim.parts:
            at = self.leads(target, spots).float()
            weights = weights + weight * at / at.sum(-1, keepdim=True).clamp_min(1)
        if aim.when:
            holds = self.exam.condition(aim.when)[spots.example, spots.row]
            weights = weights * holds[:, None]
        total = weights.sum(-1, keepdim=True)
        return weights / total.clamp_min(1e-9), total[..., 0] > 0

    def leads(self, target: Target, spots: Spots) -> Bool[Tensor, "spot seq"]:
        """True at the positions of a target that each of these rows can see."""
        return self._target(target, spots) & self.seen[spots.row]

    def _target(self, target: Target, spots: Spots) -> Bool[Tensor, "spot seq"]:
        """True at the positions that are the target, for each of the rows."""
        at = spots.row[:, None]
        if target.where == "relation":
            return self.exam.sources(target.relation, target.times, spots.example, spots.row)
        if target.role is not None:
            return self._of_role(target, target.role, spots)
        if target.where not in SAME_FOR_ALL:
            raise CircuitError(f"the target {target.where!r} needs a role")
        if target.where == "uniform":
            return torch.ones_like(self.places == at)
        return self.places == (at if target.where == "itself" else at - 1)

    def _of_role(self, target: Target, role: Role, spots: Spots) -> Bool[Tensor, "spot seq"]:
        """True at the positions of a target that names a role, for each of the rows."""
        at = spots.row[:, None]
        chain = self.chain[spots.example]
        same = chain == chain.gather(1, at)
        of_role = self._readers(role)[spots.example]
        if target.where == "own":
            return of_role & same
        if target.where == "elsewhere":
            return ~(of_role & same)
        return of_role if target.where == "all" else of_role & ~same

    def _placed(
        self, role: Role, spots: Spots, own: Float[Tensor, "batch read seq"]
    ) -> Float[Tensor, "spot seq"]:
        """Rows at the same position, whose chain has the role at the same place, share a mean."""
        read = own.shape[-2]
        if (role, read) not in self._kinds:
            self._kinds[role, read] = self._by_place(role, read)
        kind, count = self._kinds[role, read]
        sums = own.new_zeros(len(count), own.shape[-1])
        sums.index_add_(0, kind.flatten(), own.flatten(0, 1))
        mine = kind[spots.example, spots.read]
        return sums[mine] / count[mine, None]

    def _by_place(self, role: Role, read: int) -> Kinds:
        """A number for each row's position and place, and how many rows have it.

        The place is where the row's chain has the role first; nowhere is a place of its own.
        """
        length, there = self.exam.length, self._readers(role)
        places = []
        for row in range(length - read, length):
            mine = there & (self.chain == self.chain[:, row, None])
            first = mine.byte().argmax(-1)
            places.append(torch.where(mine.any(-1), first, length) + (length + 1) * row)
        _, kind, count = torch.stack(places, 1).unique(return_inverse=True, return_counts=True)
        return kind, count

    def spots(self, role: Role | None, read: int) -> Spots:
        """The rows of a role (None: of all) among the last `read` positions."""
        if (role, read) not in self._spots:
            every = self.places.expand_as(self.chain) >= self.exam.length - read
            mask = every if role is None else every & self._readers(role)
            self._spots[role, read] = Spots.where(mask, read)
        return self._spots[role, read]

    def _one_example(self, read: int) -> Spots:
        rows, here = self.places[-read:], self.places[:read]
        return Spots(torch.zeros_like(rows), rows, here, here, read)

    def _readers(self, role: Role) -> Bool[Tensor, "batch seq"]:
        return self.exam.positions(role).bool()
