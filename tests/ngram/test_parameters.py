"""What is trained: sets of heads, where training begins, and shares that add up."""

import numpy as np
import pytest

from hopscope.configs import InductionModel
from hopscope.ngram.parameters import Parameters, initial, set_name, sets, softmax


def test_sets_are_all_of_at_most_the_degree() -> None:
    model = InductionModel(heads=3, degree=2)
    assert sets(model) == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    assert sets(InductionModel(heads=2, degree=2, constant=True))[0] == ()
    assert [set_name(heads) for heads in sets(model)][-1] == "{2,3}"


def test_training_begins_with_each_head_at_a_lag_of_its_own() -> None:
    begin = initial(InductionModel(heads=2, window=3, own=5, other=0.5, c=0.2, a=0.1))
    assert begin.w.tolist() == [[5, 0.5, 0.5], [0.5, 5, 0.5]]
    assert begin.c.tolist() == [0.2] * 3
    assert float(begin.a) == 0.1
    more = initial(InductionModel(heads=3, window=2, degree=1))
    assert more.attention[2] == pytest.approx([0.5, 0.5])  # no lag is left for it


def test_shares_are_of_squares_and_attention_of_exponentials() -> None:
    at = Parameters(np.array([1.0, -3.0]), np.log(np.array([[1.0, 3.0]])), np.array(2.0))
    assert at.shares.tolist() == pytest.approx([0.1, 0.9])
    assert at.attention.tolist() == [pytest.approx([0.25, 0.75])]
    again = Parameters.of(at.named())
    assert all((again.named()[name] == value).all() for name, value in at.named().items())


def test_numbers_too_large_or_none_at_all_are_no_surprise() -> None:
    np.testing.assert_allclose(softmax(np.array([[1e4, 1e4 - 1, -1e4]])).sum(axis=-1), 1)
    assert softmax(np.array([1e4, 0.0])).tolist() == [1.0, 0.0]
    for c in (0.0, 1e200):  # and no warning: a checkpoint may have been forged
        at = Parameters(c=np.full(3, c), w=np.zeros((1, 2)), a=np.array(1.0))
        assert np.isnan(at.shares).all()
