"""Shapes of models: heads divide the width, and widths have defaults."""

import pytest

from hopscope.configs import Model
from hopscope.configs.model import Interface
from hopscope.errors import ConfigError


def test_heads_divide_the_width_or_have_one_of_their_own() -> None:
    with pytest.raises(ConfigError, match="heads is 3 and d_model 128.* choose a divisor or set d"):
        Model(heads=3, d_model=128)
    assert Model(heads=3, d_model=128, d_head=16).head_width == 16
    assert Model(heads=4, d_model=128).head_width == 32


def test_the_hidden_layer_is_four_times_as_wide_unless_given() -> None:
    assert Model(d_model=24, heads=2).mlp_width == 96
    assert Model(d_model=24, heads=2, d_mlp=10).mlp_width == 10


def test_a_token_is_one_number_and_a_vector_as_many_as_it_has() -> None:
    ends = {"inputs": 50, "length": 4, "read": 1, "outputs": 3}
    assert Interface(tokens=True, **ends).numbers == 1
    assert Interface(tokens=False, **ends).numbers == 50
