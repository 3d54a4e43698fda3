"""What luck could do, against every way in which outcomes can be dealt."""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.papers.luck import Outcome, luck


def dealt(outcomes: Sequence[Outcome]) -> float:
    """By going through every choice of the models for which the claim holds."""
    owners = [number for number, (_, models) in enumerate(outcomes) for _ in range(models)]

    def apart(held: Sequence[int]) -> float:
        sizes = [models for _, models in outcomes]
        return sum(own * (size - own) / size for own, size in zip(held, sizes, strict=True))

    here = apart([held for held, _ in outcomes])
    chosen = list(combinations(owners, sum(held for held, _ in outcomes)))
    every = [apart([each.count(number) for number in range(len(outcomes))]) for each in chosen]
    return sum(value <= here + 1e-9 for value in every) / len(every)


READING = st.integers(1, 3).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(st.lists(READING, min_size=1, max_size=4))
def test_luck_is_counted_over_every_way(outcomes: list[Outcome]) -> None:
    assert luck(outcomes) == pytest.approx(dealt(outcomes), abs=1e-12)


def test_two_readings_of_three_are_fishers_exact_test() -> None:
    """Three of three against none of three: 2 of 20 tables are as extreme."""
    assert luck([(3, 3), (0, 3)]) == pytest.approx(0.1)
    assert luck([(2, 3), (1, 3)]) == 1
    assert luck([(3, 3), (3, 3)]) == 1
