"""Planted models: transformers with weights written by hand, whose circuits are known.

They are the ground truth for circuit discovery, and prove that their depth suffices. A plan lists
what each head looks up and moves. `_Writer` turns it into the weights of a transformer without MLPs
and norms.

The residual stream is divided into named parts, each as wide as a symbol: `symbol` and `code` (the
input), `before` (the symbol one position earlier), and registers. In a chain, call a position (a
value, or the query) by its symbol x_m. In layer 0 it copies the symbol before it, which for a value
is its own key. In each later layer it looks up the furthest symbol that it knows among the `before`
parts, and appends all registers of the position found to its own:

    layer 0       before   := symbol of the previous position
    layer t >= 1  register[h + 1 … 2h] := register[1 … h] of the position whose `before` is
                  register[h],  h = 2^(t-1),  register[1] = symbol

The reach doubles with each layer, so L layers answer 2^(L-1) - 1 hops, which is the most that any
causal transformer can (hopscope.theory). Two kinds of positions must not be found by mistake.
First, the position after a value x_m also has x_m before it. It comes later than the value to be
found, so scores decrease slowly with position. Second, the very first position can only attend to
itself, so its `before` is its own symbol; hence `before` is compared after subtracting a part of
`symbol`.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from hopscope.configs import ConditionalRetrieval, Model, Retrieval, Task, VectorTask
from hopscope.errors import ModelError
from hopscope.facts import Role
from hopscope.models.layers import Affine
from hopscope.models.transformer import Block, Transformer
from hopscope.theory import Path

CLEAR = 40.0
"""A score that is lower than the best by this much gets no weight in float32."""
SHARPNESS_PER_POSITION = 70.0
"""The scale of the scores that compare symbols, per position of the sequence."""
LONGEST = 2_000
"""The most positions for which float32 can distinguish scores of that scale."""
SPHERE_DIM = 64
"""Random unit vectors of this dimension are far enough apart (inner products below about 0.5)."""
LATENESS = 0.3
"""How much a score falls from the first position to the last, as a share of the score of a perfect
match. So the earlier of two equal matches wins."""
OWN_STEPS = 3.0
"""The share of `symbol` that is subtracted from `before`, in units of the score that is lost per
position. The first position needs more than 1 to score below the second. The position after a value
x_m comes 3 or more positions after x_m's own value, so inner products of different symbols may
change the share by up to ±1/2."""
TRIPLE = ("a->x", "a->y", "x,y->z")
"""The facts of the conditional task that can be planted: the paper's example (§3.1)."""


@dataclass(frozen=True)
class Planted:
    """A model, the task that it solves, and all paths of its circuit."""

    task: VectorTask
    model: Transformer
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Lookup:
    """What one head does: where it attends, and what it moves.

    `match` lists (part of the destination, part of the source compared with it, scale); `carry`
    lists (part of the source, part of the destination to which it is moved). With `back`, the head
    attends that many positions back. `late` is the score that is subtracted per unit of lateness.
    """

    match: tuple[tuple[str, str, float], ...] = ()
    carry: tuple[tuple[str, str], ...] = ()
    back: int | None = None
    late: float = 0.0
    paths: tuple[tuple[Role, Role], ...] = ()


def planted(
    task: Task,
    spare_layers: Collection[int] = (),
    heads: int | None = None,
    twins: bool = False,
) -> Planted:
    """A transformer that solves the task with the fewest causal layers, and its true circuit.

    `spare_layers` are the numbers of additional layers that do nothing. `heads` is the number of
    heads in every layer (default: as many as needed); the others are idle. With `twins`, every
    working head is doubled, and the two share its work.
    """
    if not isinstance(task, Retrieval | ConditionalRetrieval):
        raise ModelError(f"task is {task.kind}; planted are retrieval and conditional")
    least = _plan_of(task)
    work = iter([[twin for lookup in layer for twin in [lookup] * (1 + twins)] for layer in least])
    layers = range(len(least) + len(set(spare_layers)))
    if not set(spare_layers) <= set(layers):
        raise ModelError(
            f"spare layers are {sorted(spare_layers)}; the model has layers 0 … {layers[-1]}"
        )
    plan = [[] if layer in spare_layers else next(work) for layer in layers]
    most = max(map(len, plan))
    if heads is not None and heads < most:
        raise ModelError(f"heads is {heads}; this circuit has {most} in one layer")
    paths = (
        Path(layer, head, query, key)
        for layer, lookups in enumerate(plan)
        for head, lookup in enumerate(lookups)
        for query, key in lookup.paths
    )
    return Planted(task, _Writer(task, plan, heads or most).model, tuple(sorted(paths)))


def _plan_of(task: Retrieval | ConditionalRetrieval) -> list[list[Lookup]]:
    """The plan of a task; raises ModelError if hand-written heads could not distinguish its symbols
    or positions.
    """
    if isinstance(task, ConditionalRetrieval) and task.facts != TRIPLE:
        facts = "; ".join(task.facts)
        raise ModelError(f"the facts are {facts}; planted are chains and {'; '.join(TRIPLE)}")
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
    return _chain_plan(task) if isinstance(task, Retrieval) else _triple_plan()


def _register(number: int) -> str:
    """The name of the part of the residual stream with register `number`."""
    return "symbol" if number == 1 else f"register {number}"


def _chain_plan(task: Retrieval) -> list[list[Lookup]]:
    """One head per layer: copy the key, then double the reach until x_D is known."""
    needed = _needed_paths(task.hops)
    own_share = OWN_STEPS * LATENESS / (task.chains * (2 * task.hops + 1) - 1)
    plan = [[Lookup(carry=(("symbol", "before"),), back=1, paths=needed[0])]]
    for layer in range(1, len(needed)):
        known = 2 ** (layer - 1)
        carry = tuple((_register(n), _register(known + n)) for n in range(1, known + 1))
        furthest = _register(known)
        match = ((furthest, "before", 1.0), (furthest, "symbol", -own_share))
        plan.append([Lookup(match, carry, late=LATENESS, paths=needed[layer])])
    return plan


def _needed_paths(hops: int) -> list[tuple[tuple[Role, Role], ...]]:
    """For each layer, the (destination, source) pairs that the query needs, found backwards from
    the query.
    """
    paths: list[set[tuple[Role, Role]]] = [set() for _ in range(1 + hops.bit_length())]

    def want(number: int, count: int) -> None:
        """Add the paths by which the value (or query) x_m gets x_m … x_{m + count - 1}."""
        if count <= 1:
            return
        layer = (count - 1).bit_length()
        known = 2 ** (layer - 1)
        fact = number + known - 1  # its key is the furthest symbol known before the layer
        carrier = Role("value", number - 1) if number else Role("query")
        paths[layer].add((carrier, Role("value", fact)))
        paths[0].add((Role("value", fact), Role("key", fact)))
        want(number, known)
        want(fact + 1, count - known)

    want(0, hops + 1)
    return [tuple(sorted(layer)) for layer in paths]


def _triple_plan() -> list[list[Lookup]]:
    """a→x and a→y in one layer, distinguished by which is earlier; then (x, y)→z by both keys."""
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


class _Writer:
    """Writes a plan into the weights of an ordinary transformer."""

    def __init__(self, task: VectorTask, plan: list[list[Lookup]], heads: int) -> None:
        self.rates, self.width, interface = task.rates(), task.dim, task.interface()
        facts, self.length = len(task.graph().facts), interface.length
        if self.length > LONGEST:
            raise ModelError(
                f"{facts} facts and {task.chains} chains make {self.length} "
                f"positions; planted models keep up to {LONGEST} apart: ask for fewer"
            )
        self.sharpness = SHARPNESS_PER_POSITION * self.length
        lookups = [lookup for layer in plan for lookup in layer]
        answers = [_register(2 + number) for number in range(facts)]
        carried = {part for lookup in lookups for pair in lookup.carry for part in pair}
        names = ["symbol", "code", *sorted({*carried, *answers} - {"symbol"})]
        self.parts = {name: self._cell(number) for number, name in enumerate(names)}
        # A head's width: one symbol per comparison and one for lateness, or the symbols it moves.
        self.head_width = task.dim * max(max(len(x.match) + 1, len(x.carry)) for x in lookups)
        config = Model(
            layers=len(plan), heads=heads, d_model=len(names) * task.dim,
            d_head=self.head_width, mlp=False, norm="none", init="fan-in",
        )  # fmt: skip
        self.model = Transformer.seeded(config, interface, 0)
        self._write(plan, answers)

    def _cell(self, number: int, start: int = 0) -> slice:
        """The slice of one symbol among consecutive symbols."""
        return slice(start + number * self.width, start + (number + 1) * self.width)

    @torch.no_grad()
    def _write(self, plan: list[list[Lookup]], answers: list[str]) -> None:
        source = self.model.input
        assert isinstance(source, Affine)
        source.weight.zero_()
        source.weight[: 2 * self.width] = torch.eye(2 * self.width)
        self.model.head.weight.zero_()
        for number, part in enumerate(answers):
            self.model.head.weight[self._cell(number), self.parts[part]] = torch.eye(self.width)
        for block, lookups in zip(self.model.blocks, plan, strict=True):
            assert isinstance(block, Block)
            # Heads without work keep random queries, keys and values, and write nothing.
            block.attention.out.weight.zero_()
            for head, lookup in enumerate(lookups):
                self._write_head(block, head, lookup, share=1 / lookups.count(lookup))

    def _write_head(self, block: Block, head: int, lookup: Lookup, share: float) -> None:
        attention, code, start = block.attention, self.parts["code"], head * self.head_width
        query, key, value = (
            matrix.weight[start : start + self.head_width].zero_()
            for matrix in (attention.query, attention.key, attention.value)
        )
        eye, scale = torch.eye(self.width), 1 / attention.scale  # undo the division by √width
        if lookup.back is not None:
            turned = self._turned(lookup.back)
            query[self._cell(0), code] = turned * self._code_sharpness() * scale
            key[self._cell(0), code] = eye
        for number, (wanted, compared, factor) in enumerate(lookup.match):
            cell = self._cell(number)
            query[cell, self.parts[wanted]] = eye * factor * self.sharpness * scale
            key[cell, self.parts[compared]] = eye
        if lookup.late:
            row = len(lookup.match) * self.width
            attention.query.pair[1][start + row] = -lookup.late * self.sharpness * scale
            key[row, code] = self._lateness()
        for number, (carried, target) in enumerate(lookup.carry):
            value[self._cell(number), self.parts[carried]] = eye
            attention.out.weight[self.parts[target], self._cell(number, start)] = eye * share

    def _code_sharpness(self) -> float:
        """A scale that separates the code of one position from that of every other."""
        distances = range(1, self.length + 2)
        return CLEAR / min(sum(1 - math.cos(rate * d) for rate in self.rates) for d in distances)

    def _turned(self, back: int) -> Tensor:
        """The map from a position's code to that of `back` positions earlier."""
        cos = torch.diag(torch.tensor([math.cos(back * rate) for rate in self.rates]))
        sin = torch.diag(torch.tensor([math.sin(back * rate) for rate in self.rates]))
        return torch.cat((torch.cat((cos, sin), 1), torch.cat((-sin, cos), 1)))

    def _lateness(self) -> Tensor:
        """A read-out of the code's slowest sine, which rises from 0 at the first position to 1 at
        the last.
        """
        furthest = (self.length - 1) * self.rates[-1]
        if furthest > math.pi / 2:
            raise ModelError(
                f"the slowest frequency turns {furthest:.1f} radians over {self.length} positions, "
                f"so that early and late look alike: raise dim ({self.width}) or base"
            )
        reading = torch.zeros(self.width)
        reading[-1] = 1 / math.sin(furthest)
        return reading
