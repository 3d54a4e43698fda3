"""Read what every position holds: linear maps from the residual stream to symbols.

1. Draw examples, and walk them through the model; at every place (a layer's stream, or what one
   head adds) and every role, sum up what a fit needs.
2. Fit maps to the symbols of the position's own chain, of another chain, and of another example,
   all at once.
3. Walk other examples, and mark the maps on them.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of
from hopscope.circuits.engine import Adapter, check_finite
from hopscope.circuits.exam import Questions
from hopscope.configs import FactTask
from hopscope.errors import CircuitError
from hopscope.tracing.contents import Contents, Held
from hopscope.tracing.linear import Fit, Moments, discriminants, ridge
from hopscope.tracing.lot import Lot
from hopscope.tracing.marking import AccuracyMarks, Marks, VarianceMarks
from hopscope.tracing.streams import Place, Streams

EXAMPLES = 1024
"""Examples on which maps are fitted; half as many others mark them."""
FEWEST = 2
"""Positions to fit on, for each number of a residual stream."""

Cell = tuple[Place, int]
"""A place, and the number of a role."""


@torch.no_grad()
def contents(
    model: AnyModel,
    task: Questions,
    examples: int = EXAMPLES,
    seed: int = 0,
    *,
    heads: bool = True,
) -> Contents:
    """What every role of a model holds after every layer, and what each of its heads adds there
    (unless told to leave out `heads`).

    Maps are fitted on so many examples, and marked on half as many others. Questions of one's own
    that name no symbols, and whose inputs are tokens, are read for the token at each position
    (`itself`) and for those that its relations lead to (`hop`, `hop ×2`).
    """
    if examples < 2:
        raise CircuitError(f"examples is {examples}; maps are fitted on at least 2")
    adapter = adapter_of(model)
    streams = Streams(adapter, heads)
    fitted, marked = Lot.pair(task, examples, max(2, examples // 2), seed)
    fits = _fits(streams, fitted)
    marks = _marks(streams, marked, fits)
    exam = marked.exam
    table = {cell: its.found() for cell, its in marks.items()}
    return Contents(
        model=adapter.digest(),
        task=task if isinstance(task, FactTask) else None,
        measure="accuracy" if marked.tokens else "R²",
        roles=exam.table,
        symbols=marked.names,
        stream=_held(table, [(n, None) for n in range(adapter.layers + 1)], marked),
        heads=_held_by_heads(table, adapter, marked) if streams.heads else None,
        fitted=examples,
        examples=len(exam),
        seed=seed,
        loss=streams.loss(exam),
        guess=exam.guess,
    )


def _fits(streams: Streams, lot: Lot) -> dict[Cell, Fit]:
    """The maps of every place and role."""
    moments: dict[Cell, Moments] = {}
    for cell, _, x, y in _rows(streams, lot):
        if cell not in moments:
            moments[cell] = Moments(x.shape[-1], y.shape[1], lot.classes)
        moments[cell].add(x, y)
    for (_, role), its in moments.items():
        _check_enough(lot, role, its)
    solve = discriminants if lot.tokens else ridge
    return {cell: solve(its) for cell, its in moments.items()}


def _check_enough(lot: Lot, role: int, its: Moments) -> None:
    width = len(its.sum_x)
    if its.rows < FEWEST * width:
        needed = -(-FEWEST * width * len(lot.exam) // its.rows)
        raise CircuitError(
            f"a residual stream of {width} numbers cannot be read off {its.rows} positions: "
            f"{lot.exam.table[role]} stands there in {len(lot.exam)} examples; take at least "
            f"{needed:,} examples"
        )


def _marks(streams: Streams, lot: Lot, fits: dict[Cell, Fit]) -> dict[Cell, Marks]:
    """How well the maps do on other examples."""
    marks: dict[Cell, Marks] = {}
    for cell, example, x, y in _rows(streams, lot):
        if cell not in fits:
            continue  # a role too rare to have been seen before
        if cell not in marks:
            marks[cell] = (AccuracyMarks if lot.tokens else VarianceMarks)(
                fits[cell], len(lot.exam)
            )
        marks[cell].add(example, x, y)
    return marks


def _rows(
    streams: Streams, lot: Lot
) -> Iterator[tuple[Cell, Int[Tensor, "spot"], Float[Tensor, "spot width"], Tensor]]:
    """For every place and role: the example of each position, what stands there, its targets."""
    for some in streams.chunks(lot.exam):
        mine = []
        for role, (example, place) in enumerate(lot.spots):
            here = (example >= some.start) & (example < some.stop)
            if here.any():
                at = (example[here], place[here])
                mine.append((role, at, lot.targets(*at)))
        for where, x in streams.places(lot.exam.inputs[some]):
            check_finite(x, f"what stands in the residual stream after layer {where[0]}")
            found = x.cpu()
            for role, (example, place), y in mine:
                yield (where, role), example, found[example - some.start, place], y


Table = dict[Cell, tuple[np.ndarray, np.ndarray, np.ndarray | None]]


def _held_by_heads(table: Table, adapter: Adapter | CallbackModel, lot: Lot) -> Held:
    """[layer, head, role, symbol] for every head."""
    shape = (adapter.layers, adapter.heads)
    places: list[Place] = [(n + 1, head) for n in range(shape[0]) for head in range(shape[1])]
    return _held(table, places, lot).with_axes(shape)


def _held(table: Table, places: list[Place], lot: Lot) -> Held:
    """What was found in some places."""
    count = len(lot.names)
    shape = (len(places), len(lot.exam.table), lot.groups)
    score, half, loss = (np.full(shape, np.nan) for _ in range(3))
    for number, place in enumerate(places):
        for role in range(shape[1]):
            if (place, role) in table:
                its = table[place, role]
                score[number, role], half[number, role] = its[:2]
                if its[2] is not None:
                    loss[number, role] = its[2]
    own, chance = slice(None, count), slice(count, 2 * count)
    other = score[..., 2 * count :]
    return Held(
        own=score[..., own],
        half=half[..., own],
        other=other if other.shape[-1] else np.full_like(score[..., own], np.nan),
        chance=score[..., chance],
        log_loss=loss[..., own] if lot.tokens else None,
    )
