"""What is trained: sets of heads, where training begins, and shares that add up."""

import numpy as np
import pytest

from hopscope.configs import InductionModel
from hopscope.ngram.parameters import Parameters, initial, sets, softmax


def test_training_begins_with_each_head_at_a_lag_of_its_own() -> None:
    model = InductionModel(heads=3, window=2, own=5, other=0.5, c=0.2, a=0.1)
    assert sets(model) == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    assert sets(InductionModel(heads=2, degree=2, constant=True))[0] == ()
    begin = initial(model)
    assert begin.w.tolist() == [[5, 0.5], [0.5, 5], [0.5, 0.5]]  # no lag is left for the third
    assert begin.c.tolist() == [0.2] * 6
    assert float(begin.a) == 0.1


def test_shares_are_of_squares_and_attention_of_exponentials() -> None:
    at = Parameters(np.array([1.0, -3.0]), np.log(np.array([[1.0, 3.0]])), np.array(2.0))
    assert at.shares.tolist() == pytest.approx([0.1, 0.9])
    assert at.attention.tolist() == [pytest.approx([0.25, 0.75])]
    assert softmax(np.array([1e4, 0.0])).tolist() == [1.0, 0.0]
    for c in (0.0, 1e200):  # and no warning: a checkpoint may have been forged
        assert np.isnan(Parameters(np.full(3, c), at.w, at.a).shares).all()
