"""Whether a reading matters, or luck: how a claim fares over models of many readings."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from math import comb

Outcome = tuple[int, int]
"""Of one reading: for how many models a claim holds, and how many there are."""


def luck(outcomes: Sequence[Outcome]) -> float:
    """How likely the models of each reading agree as well as they do, or better, if the reading
    makes no difference: the same outcomes dealt among all models, every way alike.

    A reading disagrees by the number of its models for which the claim holds, times the number of
    the others, over the number of all. This is the exact test of independence of a table of
    readings and outcomes (Freeman and Halton, 1951), with that sum as what is compared.

    >>> round(luck([(2, 2), (0, 2)]), 3)
    0.333
    """
    ways = {(0, Fraction(0)): 1}  # by the models for which it holds, and the disagreement
    for _, models in outcomes:
        more: defaultdict[tuple[int, Fraction], int] = defaultdict(int)
        for (held, apart), count in ways.items():
            for holds in range(models + 1):
                key = held + holds, apart + _disagreement(holds, models)
                more[key] += count * comb(models, holds)
        ways = more
    found = sum(_disagreement(*outcome) for outcome in outcomes)
    holds, models = (sum(counts) for counts in zip(*outcomes, strict=True))
    as_well = sum(
        count for (held, apart), count in ways.items() if held == holds and apart <= found
    )
    return float(Fraction(as_well, comb(models, holds)))


def _disagreement(holds: int, models: int) -> Fraction:
    return Fraction(holds * (models - holds), models)


def luck_told(outcomes: Sequence[Outcome]) -> str:
    """The same in words.

    >>> luck_told([(2, 2), (0, 2)])
    'if readings made no difference, models of one would agree as well with probability 0.33'
    """
    return (
        "if readings made no difference, models of one would agree as well with probability "
        f"{luck(outcomes):.2g}"
    )
