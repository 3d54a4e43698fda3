"""What every config does: it has one spelling, and names for its fields."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopscope.configs import Experiment, Model
from hopscope.configs.config import SHOWN, shortened


def test_whole_numbers_of_numpy_are_numbers() -> None:
    assert Model(layers=np.int64(3)).layers == 3  # type: ignore[arg-type]


def test_canonical_json_is_sorted_and_leaves_defaults_out() -> None:
    model = Model(mlp=False, layers=2, heads=4, d_head=16)
    text = model.canonical_json()
    assert text == '{"d_head":16,"layers":2,"mlp":false}'
    assert Model.from_json(text) == model
    assert Model().canonical_json() == "{}"


def test_fields_of_fields_have_names_with_dots() -> None:
    named = Experiment(seeds=(3,)).named()
    assert named["model.layers"] == Model().layers
    assert named["seeds"] == [3]
    assert "model" not in named


@given(st.text(max_size=300))
def test_long_texts_are_shortened_and_short_ones_are_not(text: str) -> None:
    short = shortened(text)
    assert short == text if len(text) <= SHOWN else short == text[:SHOWN] + "…"
