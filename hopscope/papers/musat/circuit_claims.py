"""The claims of Musat (ICLR 2025) about the circuits of transformers A, B and C.

The paper leaves their initial weights and more open, so each claim is judged under our reading of
the paper (musat/fig5), and under other variants.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopscope.milestones import HALF
from hopscope.papers.claim import Claim
from hopscope.papers.cost import training_flop
from hopscope.papers.judge import LEAST_SEEDS, Judge, Tally, group, number_list, out_of, span
from hopscope.papers.musat.rows import CircuitRow, VariantRow
from hopscope.papers.musat.variants import Variant, variant_of
from hopscope.papers.row import ResultRow

SOLVED = 0.01
"""Loss of transformers A to C (§8.2)."""
REMOVALS = (0.17, 0.89)
"""Range of the loss after removing a path (appendix E)."""
FIRST_LAYERS = (0.05, 0.1)
"""Range of the loss after removing the first useful layer (appendix E)."""
FEWEST = 3
"""Least number of heads that solve three hops (§8.2)."""
CIRCUIT_LOSS = 0.05
"""The loss of a circuit alone is below this (appendix E, result of step 5). If it is not, findings
about the circuit's heads do not apply to the model."""
CircuitRows = list[CircuitRow]


def variant_name(row: CircuitRow) -> str:
    """Return the variant of a model; rows without one have our reading of the paper."""
    return row.variant if isinstance(row, VariantRow) else Variant().name


def of_the_paper(row: CircuitRow) -> bool:
    """Return whether the paper can mean this variant: shuffled facts are our own experiment."""
    return variant_of(variant_name(row)).order == Variant().order


def longest_of_each(rows: CircuitRows) -> CircuitRows:
    """Return for each variant the models of the longest training that has enough seeds."""
    kept: CircuitRows = []
    for own in group(rows, variant_name).values():
        lengths = group(own, lambda row: row.steps)
        kept += max(lengths.items(), key=lambda pair: (len(pair[1]) >= LEAST_SEEDS, pair[0]))[1]
    return kept


def low(row: CircuitRow) -> bool:
    """Return whether the circuit alone has a low loss."""
    return row.prescribed < CIRCUIT_LOSS


def idle(row: CircuitRow) -> int:
    """Return the number of heads without a row in the circuit."""
    return row.layers * row.heads - len(row.needed)


def seen_by_eye(row: CircuitRow) -> int:
    """Return the number of heads whose map shows a look-up: a role gives more than half of its
    attention to another role of its own chain.
    """
    own = row.role_maps.own
    other_role = ~np.eye(own.shape[-1], dtype=bool)
    return int((other_role & (own > HALF)).any(axis=(-2, -1)).sum())


def joined(row: CircuitRow) -> int:
    """Return for how many facts the first head with a path attends from the value to its key by
    more than half.
    """
    if not row.useful:
        return 0
    maps, first = row.role_maps, row.useful[0]
    return sum(
        bool(maps.between(f"value {fact}", f"key {fact}")[first] > HALF)
        for fact in range(row.hops or 0)
    )


def paths_of(row: CircuitRow) -> tuple[str, ...]:
    """Return the paths of all heads but the first, without their layers."""
    return tuple(sorted(each.what for each in row.removals if each.head not in row.useful[:1]))


def different(rows: CircuitRows) -> bool:
    """Return whether all circuits have low losses, and no two have the same paths."""
    known = [paths_of(row) for row in rows if row.useful]
    return len(set(known)) == len(rows) > 1 and all(map(low, rows))


def in_common(rows: CircuitRows) -> str:
    """Return as text how many circuits differ, and the paths that all of them have."""
    common = set.intersection(*(set(paths_of(row)) for row in rows))
    return (
        f"{len({paths_of(row) for row in rows if row.useful})} different circuits in {len(rows)}; "
        f"in all of them: {', '.join(sorted(common)) or 'no path'}"
    )


def removals(row: CircuitRow) -> list[float]:
    """Return the loss without each path, except those of the first head with a path."""
    return [each.prescribed for each in row.removals if each.head not in row.useful[:1]]


def first_removed(row: CircuitRow) -> list[float]:
    """Return the loss without the first head that has a path (empty if there is none)."""
    return [each.loss for each in row.whole[:1]]


def within(losses: list[float], limits: tuple[float, float]) -> list[float]:
    return [loss for loss in losses if limits[0] <= loss <= limits[1]]


def all_within(losses: list[float], limits: tuple[float, float]) -> bool:
    """Return whether there are losses, and all are within these limits."""
    return [] != losses == within(losses, limits)


def removed(rows: CircuitRows, losses: Callable[[CircuitRow], list[float]], limits: Any) -> str:
    """Return the losses of all models as text."""
    every = [loss for row in rows for loss in losses(row)]
    counts = (out_of(len(within(losses(row), limits)), len(losses(row))) for row in rows)
    return f"{span(every, 2)} (within: {', '.join(counts)})" if every else "no such path"


def shared_steps(rows: CircuitRows) -> str:
    """Return as text the losses without each step that several heads share."""
    steps = [step.loss for row in rows for step in row.shared]
    return f"; steps that heads share, without all of them: {span(steps, 2)}" if steps else ""


def _claim(
    name: str, says: str, where: str, paper: str, how: str, holds: Callable[[Any], bool],
    **judged: Any,
) -> Claim:  # fmt: skip
    """Make a claim that is judged from figure 5, and from other variants; `judged` are fields of
    its judge.
    """
    judge: Judge[Any] = Judge(
        CircuitRow, holds, among=of_the_paper, once=longest_of_each, variant=variant_name,
        first=Variant().name, alike=lambda rows: rows[0].steps, **judged,
    )  # fmt: skip
    beside = ("musat/variants-long", "musat/variants")
    return Claim(
        f"musat/abc-{name}", says, where, paper, how, ("musat/fig5",), judge, beside=beside
    )


CLAIMS = (
    _claim(
        "below-0.01", "Transformers A, B and C end below 0.01.", "§8.2", "< 0.01",
        "validation loss, mean over the last 100 steps",
        lambda row: row.loss < SOLVED,
        ours=lambda rows: f"{number_list(row.loss for row in rows)} at the end; "
        f"{number_list(row.model for row in rows)} at the best late checkpoint",
    ),
    _claim(
        "mostly-idle", "Most heads do nothing useful.", "§8.2", "most (12 − 4 = 8)",
        "heads without a row in the circuit: more than half, and not all; an eye would call those "
        "idle that give no other role of a chain more than half of a role's attention",
        lambda row: low(row) and row.layers * row.heads / 2 < idle(row) < row.layers * row.heads,
        ours=lambda rows: (
            f"{', '.join(out_of(idle(row), row.layers * row.heads) for row in rows)}; "
            f"by eye {number_list(row.layers * row.heads - seen_by_eye(row) for row in rows)}"
        ),
    ),
    _claim(
        "four-heads", "A, B and C use four heads each.", "§8.2, figure 5", "4, 4, 4",
        "heads with a path in the circuit",
        lambda row: low(row) and len(row.useful) == 4,
        ours=lambda rows: f"{number_list(len(row.useful) for row in rows)}; without a path "
        f"{number_list(len(row.needed) - len(row.useful) for row in rows)} more",
    ),
    _claim(
        "not-the-fewest", "None of A, B and C uses the fewest heads possible.", "§8.2",
        "4 heads each where 3 are enough", "heads of the circuit, with a path or without; three "
        "planted by hand solve three hops (`musat/depth`), and three that a training found "
        "(`gallery/three-heads`)",
        lambda row: low(row) and len(row.needed) > FEWEST,
        ours=lambda rows: number_list(len(row.needed) for row in rows),
    ),
    _claim(
        "first-head", "The first useful head joins the two symbols of each pair.", "§8.2",
        "3 of 3", "attention of the first head with a path, from the value of every pair of a "
        "chain to its key: above 0.5",
        lambda row: low(row) and joined(row) == row.hops,
        ours=lambda rows: "pairs joined: "
        + ", ".join(out_of(joined(row), row.hops or 0) for row in rows),
    ),
    _claim(
        "different", "But for the first head, circuits differ between seeds.", "§8.2",
        "3 different circuits", "the paths of every head but the first, whatever its layer",
        different, ours=in_common, of="all",
    ),
    _claim(
        "circuit-loss", "The circuits alone keep the loss below 0.05.", "appendix E", "< 0.05",
        "circuit with prescribed attention",
        low,
        ours=lambda rows: f"{number_list(row.prescribed for row in rows)} "
        f"(model {number_list(row.model for row in rows)})",
    ),
    _claim(
        "single-removals", "Removing any one path costs much.", "appendix E", "0.17 … 0.89",
        "every path removed alone, all others prescribed, but for those of the first head with a "
        "path",
        lambda row: low(row) and all_within(removals(row), REMOVALS),
        ours=lambda rows: removed(rows, removals, REMOVALS) + shared_steps(rows),
    ),
    _claim(
        "first-layers", "Removing the first layer's paths costs little.", "appendix E",
        "0.05 … 0.1", "the attention of the first head with a path made uniform, all others "
        "prescribed",
        lambda row: low(row) and all_within(first_removed(row), FIRST_LAYERS),
        ours=lambda rows: removed(rows, first_removed, FIRST_LAYERS),
    ),
)  # fmt: skip
"""Claims about the circuit's heads hold only if the circuit alone has a low loss."""


@dataclass(frozen=True)
class VariantModels:
    """The models that were trained under one variant for the same number of steps."""

    variant: str
    steps: int
    rows: tuple[CircuitRow, ...]

    @property
    def of_the_paper(self) -> bool:
        """Whether the paper can mean this variant."""
        return of_the_paper(self.rows[0])

    @property
    def flop(self) -> float:
        """The operations of the training of one of the models."""
        row = self.rows[0]
        if isinstance(row, VariantRow):
            return row.flop
        return training_flop(variant_of(self.variant).experiment(row.seed, row.steps))

    @property
    def heads(self) -> list[tuple[int, int]]:
        """For each model, the numbers of heads of its circuit with and without a path."""
        return [(len(row.useful), len(row.needed) - len(row.useful)) for row in self.rows]

    def outcomes(self) -> dict[str, Tally]:
        """Return the outcome of each claim for these models."""
        return {each.id: each.judge.outcome(self.variant, [*self.rows]) for each in CLAIMS}

    def right(self) -> dict[str, int]:
        """Return for how many of the models each claim holds."""
        return {name: outcome.right for name, outcome in self.outcomes().items()}


def by_variant(rows: Iterable[ResultRow]) -> list[VariantModels]:
    """Group models by variant and length of training, in the order of the rows."""
    meant = [row for row in rows if isinstance(row, CircuitRow)]
    groups = group(meant, lambda row: (variant_name(row), row.steps))
    return [VariantModels(name, steps, tuple(own)) for (name, steps), own in groups.items()]


def nearest(found: Sequence[VariantModels]) -> tuple[VariantModels, CircuitRow]:
    """Return the model for which most claims hold, among variants that the paper can mean.

    Of equals, the one with the lowest loss is taken.
    """
    every = [(one, row) for one in found if one.of_the_paper for row in one.rows]

    def distance(pair: tuple[VariantModels, CircuitRow]) -> tuple[int, float]:
        one, row = pair
        return -sum(replace(one, rows=(row,)).right().values()), row.loss

    return min(every, key=distance)
