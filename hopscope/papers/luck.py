"""Whether a reading matters, or luck: how a claim fares over models of many readings."""

from collections.abc import Sequence
from itertools import product
from math import comb, prod

import numpy as np

Outcome = Sequence[tuple[int, bool]]
"""Of one reading: the seed of each of its models, and whether a claim holds for it."""


def luck(outcomes: Sequence[Outcome]) -> float:
    """How likely the models of each reading agree as well as they do, or better, if the reading
    makes no difference: the outcomes of each seed dealt among the models that have it, every way
    alike. What the seed decides stays the seed's.

    A reading disagrees by the number of its models for which the claim holds, times the number of
    the others, over the number of all. This is the exact test of a randomised block design, in
    which seeds are the blocks, with that sum as what is compared.

    >>> luck([[(0, True), (1, True)], [(0, False), (1, False)]])
    0.5
    """
    every = [model for outcome in outcomes for model in outcome]
    seeds = sorted({seed for seed, _ in every})
    held = [sum(holds for seed, holds in every if seed == its) for its in seeds]
    models = [sum(seed == its for seed, _ in every) for its in seeds]
    unit = prod({len(outcome) for outcome in outcomes})
    found = sum(_apart([holds for _, holds in outcome], unit) for outcome in outcomes)
    # In how many ways models so far hold so often, by seed, and disagree by so much.
    ways = np.zeros([count + 1 for count in (*held, found)])
    ways[(0,) * ways.ndim] = 1
    for outcome in outcomes:
        own = [seeds.index(seed) for seed, _ in outcome]
        before, ways = ways, np.zeros_like(ways)
        for dealt in product((0, 1), repeat=len(own)):
            more = [0] * len(seeds) + [_apart(dealt, unit)]
            for at, holds in zip(own, dealt, strict=True):
                more[at] += holds
            if all(step < size for step, size in zip(more, ways.shape, strict=True)):
                ways[tuple(slice(step, None) for step in more)] += before[
                    tuple(slice(size - step) for step, size in zip(more, ways.shape, strict=True))
                ]
    return float(ways[tuple(held)].sum() / prod(map(comb, models, held)))


def _apart(holds: Sequence[int], unit: int) -> int:
    """The disagreement of one reading, in parts of which a unit has so many."""
    return sum(holds) * (len(holds) - sum(holds)) * unit // len(holds)


def luck_told(outcomes: Sequence[Outcome]) -> str:
    """The same in words.

    >>> luck_told([[(0, True), (1, True)], [(0, False), (1, False)]])
    'if readings made no difference, models of one would agree as well with probability 0.5'
    """
    return (
        "if readings made no difference, models of one would agree as well with probability "
        f"{luck(outcomes):.2g}"
    )
