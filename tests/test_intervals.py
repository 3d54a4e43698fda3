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
    assert [intervals.share(n, n)[1] for n in range(1, 500)] == [1] * 499
    assert intervals.mean_share([1.0] * 320)[1] == 1


@given(st.lists(st.booleans(), min_size=2, max_size=400))
def test_a_mean_of_yes_and_no_is_a_share(answers: list[bool]) -> None:
    """Agresti and Coull's interval has Wilson's middle, and holds it."""
    low, high = intervals.mean_share([float(answer) for answer in answers])
    less, more = intervals.share(sum(answers), len(answers))
    assert low <= less + 1e-12
    assert more - 1e-12 <= high
    if low > 0 and high < 1:
        assert low + high == pytest.approx(less + more)


def test_means_of_values_that_lie_close_together() -> None:
    low, high = intervals.mean_share([0.24] * 250 + [0.26] * 250)
    assert high - low < (intervals.share(125, 500)[1] - intervals.share(125, 500)[0]) / 5
    for alike in ([0.25], [1 / 3] * 4, [0.5, 0.5000001]):  # alike by chance
        low, high = intervals.mean_share(alike)
        assert 0 <= low < alike[0] - 0.15 < alike[0] + 0.15 < high <= 1


@pytest.mark.parametrize("count", [5, 10, 30, 100])
def test_chances_near_one_are_held_in_nineteen_of_twenty(count: int) -> None:
    draws = np.random.default_rng(2)
    chances = 1 / (1 + np.exp(-draws.normal(8, 6, size=(1_000, count))))
    true = (1 / (1 + np.exp(-draws.normal(8, 6, size=2_000_000)))).mean()
    ends = np.array([intervals.mean_share(each.tolist()) for each in chances])
    inside = float(((ends[:, 0] <= true) & (true <= ends[:, 1])).mean())
    assert inside > 0.93


def test_one_error_more_never_lifts_the_lower_end() -> None:
    values = [[1.0] * (320 - errors) + [0.75] * errors for errors in range(5)]
    lows = [intervals.mean_share(each)[0] for each in values]
    assert lows == sorted(lows, reverse=True)


def test_a_mean_against_its_equation() -> None:
    losses = np.random.default_rng(0).exponential(size=200)
    deviation = (sum((x - losses.mean()) ** 2 for x in losses) / 199) ** 0.5
    low, high = intervals.mean(losses)
    assert (low + high) / 2 == pytest.approx(losses.mean())
    assert (high - low) / 2 == pytest.approx(1.971957 * deviation / 200**0.5)  # 199 degrees
    assert intervals.mean(np.array([0.3])) == (0.3, 0.3)


@pytest.mark.parametrize("count", [2, 5, 50])
def test_means_and_ratios_of_a_normal_law_are_held_in_nineteen_of_twenty(count: int) -> None:
    draws = np.random.default_rng(1).normal(size=(2_000, count))
    ends = np.array([intervals.mean(draw) for draw in draws])
    shares = [intervals.ratio(draw, np.ones(count)) for draw in draws]
    for inside in (
        (ends[:, 0] < 0) & (ends[:, 1] > 0),
        np.array([abs(share) < half for share, half in shares]),
    ):
        assert float(inside.mean()) == pytest.approx(0.95, abs=0.015)  # three standard errors


def test_standard_errors_of_columns() -> None:
    values = np.arange(12.0).reshape(4, 3)
    each = [intervals.standard_error(column) for column in values.T]
    np.testing.assert_allclose(intervals.standard_error(values), each)
    assert np.isnan(intervals.standard_error(values[:1])).all()
