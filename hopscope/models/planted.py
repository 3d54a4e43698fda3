"""Transformers whose weights are written by hand: known circuits, and proof that depth suffices.

The residual stream is divided into named parts, each as wide as a symbol: `symbol` and `code` (the
input), `before` (the symbol one position earlier), and registers. In a chain, number a position
by the symbol it carries: a value (like the query) that carries x_m first copies its own key,
the symbol before it; from then on each layer looks up the furthest symbol it knows among those
`before` symbols, and appends all registers of the position found to its own:

    layer 0       before   := symbol of the previous position
    layer t >= 1  register[h + 1 … 2h] := register[1 … h] of the position whose `before` is
                  register[h],  h = 2^(t-1),  register[1] = symbol

The reach doubles with each layer, so L layers answer 2^(L-1) - 1 hops, which is the most that any
causal transformer can (hopscope.theory). Two kinds of positions would be found by mistake. The
one after a value x_m also has x_m before it; it stands later than x_m's own value, so scores
fall slowly with position. The very first position can only read itself; hence `before` is compared
after a part of `symbol` is taken off.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hopscope.configs import (
    ConditionalRetrieval,
    Interface,
    Model,
    Retrieval,
    Task,
    VectorTask,
)
from hopscope.errors import ModelError
from hopscope.facts import Role
from hopscope.models.layers import Affine
from hopscope.models.transformer import Block, Transformer

CLEAR = 40.0
"""A score that much lower than the best gets no weight in float32."""
SHARPNESS_PER_POSITION = 70.0
"""Scale of the scores that compare symbols, per position of the sequence."""
LONGEST = 2_000
"""Positions up to which float32 tells scores of that scale apart."""
LATENESS = 0.3
"""What the last position's score is lower than the first's, as a share of a perfect match."""
OWN_STEPS = 3.0
"""Share of `symbol` taken off `before`, in positions' worth of lateness. The first position needs
more than 1 to fall behind the second. The position after a value x_m stands 3 or more behind x_m's
own value, so inner products of unlike symbols may disturb the share by up to ±1/2."""
SPHERE_DIM = 64
"""Unit vectors of this many numbers are far enough apart (inner products below about 0.5)."""
TRIPLE = ("a->x", "a->y", "x,y->z")


@dataclass(frozen=True, order=True)
class Path:
    """What a head does for a circuit: positions of one role read positions of another."""

    layer: int
    head: int
    query: Role
    key: Role

    def __str__(self) -> str:
        return f"layer {self.layer} head {self.head}: {self.query} → {self.key}"


@dataclass(frozen=True)
class Planted:
    """A model, the task it solves, and all paths that it solves it by."""

    task: VectorTask
    model: Transformer
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Lookup:
    """One head's work: where it attends, and what it carries where.

    `match` lists (wanted part of the reader, part of the source, scale); `carry` lists (part of
    the source, part of the reader). `late` is the score taken off per unit of lateness.
    """

    match: tuple[tuple[str, str, float], ...] = ()
    carry: tuple[tuple[str, str], ...] = ()
    back: int | None = None
    late: float = 0.0
    paths: tuple[tuple[Role, Role], ...] = ()


Plan = Sequence[Sequence[Lookup]]


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
    task = _checked(task)
    least = _chain_plan(task) if isinstance(task, Retrieval) else _triple_plan()
    doubled = [_twinned(layer) if twins else layer for layer in least]
    plan = _with_spares(doubled, set(spare_layers))
    heads = heads or max(map(len, plan))
    if heads < max(map(len, plan)):
        raise ModelError(f"heads is {heads}; this circuit has {max(map(len, plan))} in one layer")
    writer = _Writer(task, plan, heads)
    paths = (
        Path(layer, head, query, key)
        for layer, lookups in enumerate(plan)
        for head, lookup in enumerate(lookups)
        for query, key in lookup.paths
    )
    return Planted(task, writer.model, tuple(sorted(paths)))


def _checked(task: Task) -> Retrieval | ConditionalRetrieval:
    if isinstance(task, ConditionalRetrieval):
        if task.facts != TRIPLE:
            facts = "; ".join(task.facts)
            raise ModelError(f"the facts are {facts}; planted are chains and {'; '.join(TRIPLE)}")
    elif not isinstance(task, Retrieval):
        raise ModelError(f"task is {task.kind}; planted are retrieval and conditional")
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
    return task


def _register(number: int) -> str:
    return "symbol" if number == 1 else f"register {number}"


def _chain_plan(task: Retrieval) -> list[list[Lookup]]:
    """One head per layer: copy the key, then double the reach until x_D is known."""
    hops = task.hops
    own_keys = tuple((Role("value", k), Role("key", k)) for k in range(hops))
    plan = [[Lookup(carry=(("symbol", "before"),), back=1, paths=own_keys)]]
    own_share = OWN_STEPS * LATENESS / (task.chains * (2 * hops + 1) - 1)
    known = 1
    while known < hops + 1:
        carry = tuple((_register(n), _register(known + n)) for n in range(1, known + 1))
        # The reader that carries x_m looks up x_{m + known - 1}, the key of that fact.
        found = [(m, m + known - 1) for m in range(hops) if m + known - 1 < hops]
        paths = tuple((_carrier(m), Role("value", fact)) for m, fact in found)
        match = ((_register(known), "before", 1.0), (_register(known), "symbol", -own_share))
        plan.append([Lookup(match, carry, late=LATENESS, paths=paths)])
        known *= 2
    return [
        [_needed(layer, number, hops) for layer in layers] for number, layers in enumerate(plan)
    ]


def _carrier(number: int) -> Role:
    """The position that carries x_m and reads on from there: a value, or the query."""
    return Role("query") if number == 0 else Role("value", number - 1)


def _needed(lookup: Lookup, layer: int, hops: int) -> Lookup:
    """Keep the paths without which the query would miss a symbol."""
    wanted = _needed_paths(hops)
    kept = tuple(path for path in lookup.paths if (layer, *path) in wanted)
    return Lookup(lookup.match, lookup.carry, lookup.back, lookup.late, kept)


def _needed_paths(hops: int) -> set[tuple[int, Role, Role]]:
    """Backwards from the query: whose registers are read, and which of them are wanted."""
    layers = hops.bit_length()
    paths: set[tuple[int, Role, Role]] = set()

    def want(number: int, count: int) -> None:
        """The carrier of x_m must come to hold x_m … x_{m + count - 1}."""
        if count <= 1:
            return
        layer = (count - 1).bit_length()
        known = 2 ** (layer - 1)
        fact = number + known - 1
        paths.add((layer, _carrier(number), Role("value", fact)))
        paths.add((0, Role("value", fact), Role("key", fact)))
        want(number, known)
        want(fact + 1, count - known)

    want(0, hops + 1)
    assert max(path[0] for path in paths) == layers
    return paths


def _triple_plan() -> list[list[Lookup]]:
    """a→x and a→y at once, told apart by which stands earlier; then (x, y)→z by both keys."""
    query, x, y, z = Role("query"), Role("value", 0), Role("value", 1), Role("value", 2)
    own_keys = ((x, Role("key", 0)), (y, Role("key", 1)), (z, Role("key", 2, 1)))
    copies = [
        Lookup(carry=(("symbol", "before"),), back=1, paths=own_keys),
        Lookup(carry=(("symbol", "two before"),), back=2, paths=((z, Role("key", 2)),)),
    ]
    match_a = (("symbol", "before", 1.0),)
    first = [
        Lookup(match_a, (("symbol", "register 3"),), late=LATENESS, paths=((query, y),)),
        Lookup(match_a, (("symbol", "register 2"),), late=-LATENESS, paths=((query, x),)),
    ]
    match_both = (("register 3", "before", 1.0), ("register 2", "two before", 1.0))
    last = [Lookup(match_both, (("symbol", "register 4"),), late=LATENESS, paths=((query, z),))]
    return [copies, first, last]


def _twinned(lookups: Sequence[Lookup]) -> list[Lookup]:
    return [twin for lookup in lookups for twin in (lookup, lookup)]


def _with_spares(plan: Plan, spares: set[int]) -> list[Sequence[Lookup]]:
    total = len(plan) + len(spares)
    if spares - set(range(total)):
        raise ModelError(f"spare layers are {sorted(spares)}; the model has layers 0 … {total - 1}")
    work = iter(plan)
    return [() if number in spares else next(work) for number in range(total)]


class _Writer:
    """Writes a plan into the weights of an ordinary transformer."""

    def __init__(self, task: VectorTask, plan: Plan, heads: int) -> None:
        self.task, self.width = task, task.dim
        answers = len(task.graph().facts)
        used = {part for layer in plan for look in layer for pair in look.carry for part in pair}
        registers = {_register(n) for n in range(1, answers + 2)}
        names = ["symbol", "code", *sorted((used | registers) - {"symbol", "code"})]
        self.parts = {n: slice(i * task.dim, (i + 1) * task.dim) for i, n in enumerate(names)}
        # A head's width: one symbol for each comparison, one more for lateness, or what it carries.
        sizes = [max(len(look.match) + 1, len(look.carry)) for layer in plan for look in layer]
        self.head_width = max(sizes) * task.dim
        positions = sum(len(fact.keys) + 1 for fact in task.graph().facts)
        decoys = sum(
            (len(task.graph().facts[n].keys) + 1) * task.decoy_count for n in task.joint_facts()
        )
        self.length = task.chains * (positions + decoys + 1)
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
        interface = Interface(
            tokens=False, inputs=2 * task.dim, length=self.length, read=task.chains,
            outputs=answers * task.dim,
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
            self.model.head.weight[rows, self.parts[_register(answer + 2)]] = torch.eye(self.width)
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

    def _rates(self) -> list[float]:
        return [self.task.base ** (-2 * i / self.width) for i in range(self.width // 2)]

    def _code_sharpness(self) -> float:
        """Enough to keep the code of one position apart from that of every other."""
        gaps = [sum(1 - math.cos(r * d) for r in self._rates()) for d in range(1, self.length + 2)]
        return CLEAR / min(gaps)

    def _turned(self, back: int) -> Tensor:
        """Turns a position's code into that of `back` positions earlier."""
        cos = torch.diag(torch.tensor([math.cos(back * rate) for rate in self._rates()]))
        sin = torch.diag(torch.tensor([math.sin(back * rate) for rate in self._rates()]))
        return torch.cat((torch.cat((cos, sin), 1), torch.cat((-sin, cos), 1)))

    def _lateness(self) -> Tensor:
        """A reading of the code that rises from 0 at the first position to 1 at the last.

        The sine of the slowest frequency, as long as it has not reached its top.
        """
        furthest = (self.length - 1) * self._rates()[-1]
        if furthest > math.pi / 2:
            raise ModelError(
                f"the slowest frequency turns {furthest:.1f} radians over {self.length} positions, "
                f"so that early and late look alike: raise dim ({self.width}) or base"
            )
        reading = torch.zeros(self.width)
        reading[-1] = 1 / math.sin(furthest)
        return reading
