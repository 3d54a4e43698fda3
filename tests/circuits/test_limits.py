"""What counts as solved: by the mean, and by every hop."""

import numpy as np
import pytest

from hopscope.circuits.limits import Limits
from hopscope.configs import Discovery
from hopscope.errors import CircuitError

SETTINGS = Discovery(low_share=0.1, low_factor=2, hop_share=0.2, hop_factor=3)


def test_a_good_model_is_held_against_guessing_and_a_poor_one_against_itself() -> None:
    good = Limits.of(np.array([0.01, 0.03]), 1.0, SETTINGS)
    assert good.mean == pytest.approx(0.1)
    assert good.hop.tolist() == pytest.approx([0.2, 0.2])
    poor = Limits.of(np.array([0.1, 0.3]), 1.0, SETTINGS)
    assert poor.mean == pytest.approx(0.4)
    assert poor.hop.tolist() == pytest.approx([0.3, 0.9])


def test_a_low_mean_hides_no_hop_that_fails() -> None:
    limits = Limits(0.5, np.array([0.6, 0.9]))
    losses = np.array([[0.1, 0.9], [0.5, 0.5], [0.7, 0.1], [0.6, 0.6], [0.0, 1.0]])
    assert limits.keep(losses).tolist() == [True, True, False, False, False]
    assert limits.keep(losses.reshape(1, 5, 2)).tolist() == [[True, True, False, False, False]]


def test_losses_of_other_hops_are_refused() -> None:
    limits = Limits(0.5, np.array([0.6, 0.9]))
    with pytest.raises(CircuitError, match="losses of 1 hops on some examples and of 2 on others"):
        limits.keep(np.zeros((3, 1)))
