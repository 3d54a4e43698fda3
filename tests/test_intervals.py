"""Intervals held against their equations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope import intervals


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_share_against_wilsons_equation(answers: tuple[int, int]) -> None:
    """The ends are the shares p whose distance to the observed one is z standard errors."""
    right, count = answers
    low, high = intervals.share(right, count)
    assert 0 <= low <= right / count + 1e-12
    assert right / count - 1e-12 <= high <= 1
    for end in (low, high):
        if 1e-9 < end < 1 - 1e-9:
            gap = abs(right / count - end)
            assert gap == pytest.approx(1.959964 * (end * (1 - end) / count) ** 0.5, rel=1e-6)


def test_the_ends_that_cannot_be_passed() -> None:
    assert intervals.share(0, 10)[0] == 0
    assert intervals.share(500, 500)[1] == 1


@given(st.lists(st.booleans(), min_size=2, max_size=400))
def test_a_mean_of_yes_and_no_is_a_share(answers: list[bool]) -> None:
    """But for one answer less in the variance, which is n - 1 of n."""
    values = [float(answer) for answer in answers]
    close = 1 / len(values)
    expected = intervals.share(sum(answers), len(answers))
    assert intervals.mean_share(values) == pytest.approx(expected, abs=close)


def test_means_of_values_that_lie_close_together() -> None:
    low, high = intervals.mean_share([0.24] * 250 + [0.26] * 250)
    assert high - low == pytest.approx(2 * 1.959964 * 0.01 / 500**0.5, rel=0.01)
    low, high = intervals.mean_share([0.25])
    assert 0 < low < 0.25 < high < 1
    low, high = intervals.mean_share([0.5, 0.5000001])  # two values are alike by chance
    assert low < 0.3 < 0.7 < high


def test_a_mean_against_its_equation() -> None:
    losses = np.random.default_rng(0).exponential(size=200)
    deviation = (sum((x - losses.mean()) ** 2 for x in losses) / 199) ** 0.5
    low, high = intervals.mean(losses)
    assert (low + high) / 2 == pytest.approx(losses.mean())
    assert (high - low) / 2 == pytest.approx(1.959964 * deviation / 200**0.5)
    assert intervals.mean(np.array([0.3])) == (0.3, 0.3)


def test_a_normal_law_is_held_in_nineteen_of_twenty() -> None:
    draws = np.random.default_rng(1).normal(size=(2_000, 50))
    ends = np.array([intervals.mean(draw) for draw in draws])
    inside = float(((ends[:, 0] < 0) & (ends[:, 1] > 0)).mean())
    assert inside == pytest.approx(0.95, abs=0.015)  # three standard errors; t would be 0.95


def test_standard_errors_of_columns() -> None:
    values = np.arange(12.0).reshape(4, 3)
    each = [intervals.standard_error(column) for column in values.T]
    np.testing.assert_allclose(intervals.standard_error(values), each)
    assert np.isnan(intervals.standard_error(values[:1])).all()
