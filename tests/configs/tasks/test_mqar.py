import math

import pytest

from hopscope.configs import MQAR


def test_a_filler_of_its_own_is_one_token_more() -> None:
    assert MQAR(alphabet=10).interface().inputs == 10
    assert MQAR(alphabet=10, filler="blank").interface().inputs == 11


def test_any_value_seen_is_the_best_guess() -> None:
    assert MQAR(pairs=6).guess() == pytest.approx(math.log(6))
