"""A permutation test: does it matter which variant a model was trained under, or is it chance?"""

from collections.abc import Sequence
from itertools import product
from math import comb, prod

import numpy as np

Models = Sequence[tuple[str, bool]]
"""Of one variant: the seed of each of its models, and whether a claim holds for it."""


def permutation_test(variants: Sequence[Models]) -> float:
    """The probability that the models of each variant agree as well as they do, or better, if the
    variant makes no difference: the outcomes of each seed are permuted among its models.

    A variant disagrees by the number of its models for which the claim holds, times the number of
    the others, over the number of all. This is the exact test of a randomised block design, in
    which seeds are the blocks, with the sum of disagreements as its statistic.

    >>> permutation_test([[("0", True), ("1", True)], [("0", False), ("1", False)]])
    0.5
    """
    every = [model for models in variants for model in models]
    seeds = sorted({seed for seed, _ in every})
    right = [sum(holds for seed, holds in every if seed == block) for block in seeds]
    count = [sum(seed == block for seed, _ in every) for block in seeds]
    unit = prod({len(models) for models in variants})
    found = sum(_disagreement([holds for _, holds in models], unit) for models in variants)
    # In how many ways the models so far hold so often, by seed, and disagree by so much.
    ways = np.zeros([size + 1 for size in (*right, found)])
    ways[(0,) * ways.ndim] = 1
    for models in variants:
        own = [seeds.index(seed) for seed, _ in models]
        before, ways = ways, np.zeros_like(ways)
        for dealt in product((0, 1), repeat=len(own)):
            more = [0] * len(seeds) + [_disagreement(dealt, unit)]
            for at, holds in zip(own, dealt, strict=True):
                more[at] += holds
            if all(step < size for step, size in zip(more, ways.shape, strict=True)):
                ways[tuple(slice(step, None) for step in more)] += before[
                    tuple(slice(size - step) for step, size in zip(more, ways.shape, strict=True))
                ]
    return float(ways[tuple(right)].sum() / prod(map(comb, count, right)))


def _disagreement(holds: Sequence[int], unit: int) -> int:
    """The disagreement of one variant, as a number of units of 1/unit."""
    return sum(holds) * (len(holds) - sum(holds)) * unit // len(holds)
