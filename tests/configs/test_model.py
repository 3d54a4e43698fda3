"""Shapes of models: widths have defaults."""

from hopscope.configs import Model
from hopscope.configs.model import Interface


def test_the_hidden_layer_is_four_times_as_wide_unless_given() -> None:
    assert Model(d_model=24, heads=2).mlp_width == 96
    assert Model(d_model=24, heads=2, d_mlp=10).mlp_width == 10
    assert Model(heads=4, d_model=128).head_width == 32


def test_a_token_is_one_number_and_a_vector_as_many_as_it_has() -> None:
    ends = {"inputs": 50, "length": 4, "read": 1, "outputs": 3}
    assert Interface(tokens=True, **ends).numbers == 1
    assert Interface(tokens=False, **ends).numbers == 50
