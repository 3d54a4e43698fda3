"""A permutation test: does the variant of a model matter, or is the result chance?"""

from collections.abc import Sequence
from itertools import product
from math import comb, prod

import numpy as np

Models = Sequence[tuple[str, bool]]
"""The models of one variant: the seed of each, and whether a claim holds for it."""


def permutation_test(variants: Sequence[Models]) -> float:
    """Return the probability that the models of each variant agree at least as well as observed, if
    the variant makes no difference. The outcomes of each seed are permuted among its models.

    The disagreement of a variant is the number of its models for which the claim holds, times the
    number of its other models, divided by the number of all its models. This is the exact test of a
    randomised block design with seeds as blocks and the sum of disagreements as statistic.

    >>> permutation_test([[("0", True), ("1", True)], [("0", False), ("1", False)]])
    0.5
    """
    every = [model for models in variants for model in models]
    seeds = sorted({seed for seed, _ in every})
    right = [sum(holds for seed, holds in every if seed == block) for block in seeds]
    count = [sum(seed == block for seed, _ in every) for block in seeds]
    unit = prod({len(models) for models in variants})
    found = sum(_disagreement([holds for _, holds in models], unit) for models in variants)
    # ways[right per seed, disagreement]: the number of assignments for the models so far.
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
    """Return the disagreement of one variant, in units of 1/unit."""
    return sum(holds) * (len(holds) - sum(holds)) * unit // len(holds)
