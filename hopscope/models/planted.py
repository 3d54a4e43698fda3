"""Transformers whose weights are written by hand: known circuits, and proof that depth suffices.

A plan (hopscope.models.plans) says what each head looks up and carries; here it becomes weights
of the ordinary transformer, without MLPs and norms. They are the ground truth on which the
discovery of circuits is graded.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from hopscope.configs import Model, Task, VectorTask
from hopscope.errors import ModelError
from hopscope.models.layers import Affine
from hopscope.models.plans import (
    TRIPLE,
    Lookup,
    Plan,
    chain_plan,
    register,
    triple_plan,
    twinned,
    with_spares,
)
from hopscope.models.transformer import Block, Transformer
from hopscope.theory import Path

CLEAR = 40.0
"""A score that much lower than the best gets no weight in float32."""
SHARPNESS_PER_POSITION = 70.0
"""Scale of the scores that compare symbols, per position of the sequence."""
LONGEST = 2_000
"""Positions up to which float32 tells scores of that scale apart."""
SPHERE_DIM = 64
"""Unit vectors of this many numbers are far enough apart (inner products below about 0.5)."""


@dataclass(frozen=True)
class Planted:
    """A model, the task it solves, and all paths that it solves it by."""

    task: VectorTask
    model: Transformer
    paths: tuple[Path, ...]


def planted(
    task: Task,
    spare_layers: Iterable[int] = (),
    heads: int | None = None,
    twins: bool = False,
) -> Planted:
    """A transformer that solves the task in the fewest causal layers, and its true circuit.

    `spare_layers` lists layers (by their number in the result) that do nothing, `heads` adds
    idle heads to every layer, and `twins` doubles each working head: two that share its work.
    """
    known, least = _planned(task)
    doubled = [twinned(layer) if twins else layer for layer in least]
    plan = with_spares(doubled, set(spare_layers))
    heads = heads or max(map(len, plan))
    if heads < max(map(len, plan)):
        raise ModelError(f"heads is {heads}; this circuit has {max(map(len, plan))} in one layer")
    writer = _Writer(known, plan, heads)
    paths = (
        Path(layer, head, query, key)
        for layer, lookups in enumerate(plan)
        for head, lookup in enumerate(lookups)
        for query, key in lookup.paths
    )
    return Planted(known, writer.model, tuple(sorted(paths)))


def _planned(task: Task) -> tuple[VectorTask, Plan]:
    """The task, if its circuit can be written by hand, and the plan of that circuit."""
    if task.kind == "retrieval":
        _check_legible(task)
        return task, chain_plan(task)
    if task.kind != "conditional":
        raise ModelError(f"task is {task.kind}; planted are retrieval and conditional")
    if task.facts != TRIPLE:
        facts = "; ".join(task.facts)
        raise ModelError(f"the facts are {facts}; planted are chains and {'; '.join(TRIPLE)}")
    _check_legible(task)
    return task, triple_plan()


def _check_legible(task: VectorTask) -> None:
    """Refuse sequences whose symbols or positions a hand-written head cannot tell apart."""
    if task.order != "backward" or task.position != "token" or not task.curriculum:
        raise ModelError(
            "planted models need order 'backward', position 'token' and the implicit curriculum; "
            f"got order {task.order!r}, position {task.position!r}, curriculum {task.curriculum}"
        )
    if task.symbols == "gaussian" or (task.symbols == "sphere" and task.dim < SPHERE_DIM):
        raise ModelError(
            f"symbols are {task.symbols} with dim {task.dim}, which a hand-written match cannot "
            f"tell apart: use one-hot, or sphere with dim >= {SPHERE_DIM}"
        )


class _Writer:
    """Writes a plan into the weights of an ordinary transformer."""

    def __init__(self, task: VectorTask, plan: Plan, heads: int) -> None:
        self.task, self.width = task, task.dim
        answers = len(task.graph().facts)
        used = {part for layer in plan for look in layer for pair in look.carry for part in pair}
        registers = {register(n) for n in range(1, answers + 2)}
        names = ["symbol", "code", *sorted((used | registers) - {"symbol", "code"})]
        self.parts = {n: slice(i * task.dim, (i + 1) * task.dim) for i, n in enumerate(names)}
        # A head's width: one symbol for each comparison, one more for lateness, or what it carries.
        sizes = [max(len(look.match) + 1, len(look.carry)) for layer in plan for look in layer]
        self.head_width = max(sizes) * task.dim
        interface = task.interface()
        self.length = interface.length
        if self.length > LONGEST:
            raise ModelError(
                f"{len(task.graph().facts)} facts and {task.chains} chains make {self.length} "
                f"positions; planted models keep up to {LONGEST} apart: ask for fewer"
            )
        self.sharpness = SHARPNESS_PER_POSITION * self.length
        config = Model(
            layers=len(plan), heads=heads, d_model=len(names) * task.dim,
            d_head=self.head_width, mlp=False, norm="none", init="fan-in",
        )  # fmt: skip
        self.model = Transformer.seeded(config, interface, 0)
        self._write(plan, answers)

    @torch.no_grad()
    def _write(self, plan: Plan, answers: int) -> None:
        source = self.model.input
        assert isinstance(source, Affine)
        source.weight.zero_()
        source.weight[: 2 * self.width] = torch.eye(2 * self.width)
        self.model.head.weight.zero_()
        for answer in range(answers):
            rows = slice(answer * self.width, (answer + 1) * self.width)
            self.model.head.weight[rows, self.parts[register(answer + 2)]] = torch.eye(self.width)
        for block, lookups in zip(self.model.blocks, plan, strict=True):
            assert isinstance(block, Block)
            # Heads without work keep random queries, keys and values, and write nothing.
            block.attention.out.weight.zero_()
            for head, lookup in enumerate(lookups):
                share = 1 / sum(other == lookup for other in lookups)
                self._write_head(block, head, lookup, share)

    def _write_head(self, block: Block, head: int, lookup: Lookup, share: float) -> None:
        attention, w = block.attention, self.width
        rows = slice(head * self.head_width, (head + 1) * self.head_width)
        query, key, value = (
            matrix.weight[rows].zero_()
            for matrix in (attention.query, attention.key, attention.value)
        )
        assert attention.query.bias is not None
        eye, scale = torch.eye(w), 1 / attention.scale  # undo the division by √width
        if lookup.back is not None:
            query[:w, self.parts["code"]] = (
                self._turned(lookup.back) * self._code_sharpness() * scale
            )
            key[:w, self.parts["code"]] = eye
        for number, (wanted, compared, factor) in enumerate(lookup.match):
            cell = slice(number * w, (number + 1) * w)
            query[cell, self.parts[wanted]] = eye * factor * self.sharpness * scale
            key[cell, self.parts[compared]] = eye
        if lookup.late:
            row = len(lookup.match) * w
            attention.query.bias[rows.start + row] = -lookup.late * self.sharpness * scale
            key[row, self.parts["code"]] = self._lateness()
        for number, (carried, target) in enumerate(lookup.carry):
            cell = slice(number * w, (number + 1) * w)
            value[cell, self.parts[carried]] = eye
            columns = slice(rows.start + cell.start, rows.start + cell.stop)
            attention.out.weight[self.parts[target], columns] = eye * share

    def _code_sharpness(self) -> float:
        """Enough to keep the code of one position apart from that of every other."""
        rates, distances = self.task.rates(), range(1, self.length + 2)
        gaps = [sum(1 - math.cos(rate * d) for rate in rates) for d in distances]
        return CLEAR / min(gaps)

    def _turned(self, back: int) -> Tensor:
        """Turns a position's code into that of `back` positions earlier."""
        rates = self.task.rates()
        cos = torch.diag(torch.tensor([math.cos(back * rate) for rate in rates]))
        sin = torch.diag(torch.tensor([math.sin(back * rate) for rate in rates]))
        return torch.cat((torch.cat((cos, sin), 1), torch.cat((-sin, cos), 1)))

    def _lateness(self) -> Tensor:
        """A reading of the code that rises from 0 at the first position to 1 at the last.

        The sine of the slowest frequency, as long as it has not reached its top.
        """
        furthest = (self.length - 1) * self.task.rates()[-1]
        if furthest > math.pi / 2:
            raise ModelError(
                f"the slowest frequency turns {furthest:.1f} radians over {self.length} positions, "
                f"so that early and late look alike: raise dim ({self.width}) or base"
            )
        reading = torch.zeros(self.width)
        reading[-1] = 1 / math.sin(furthest)
        return reading
