"""What every config does: it refuses on one line, cannot be changed, and has one spelling."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.configs.config import SHOWN, shortened
from hopscope.errors import ConfigError


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Retrieval(hops=0), "Retrieval.hops: Input should be greater than or equal to 1"),
        (lambda: Retrieval(hops=0), "got 0"),
        (lambda: Retrieval(hop=2), "Retrieval.hop: unknown field"),
        (lambda: Retrieval(symbols="cubic"), "'gaussian', 'sphere' or 'one-hot', got 'cubic'"),
        (lambda: Training(lr=-1.0), "Training.lr: .*greater than 0, got -1.0"),
        (lambda: Experiment.from_json("{"), "Experiment: Invalid JSON"),
        (lambda: Experiment(task={"kind": "sorting"}), "task: .*'sorting'"),
        (lambda: Model(heads=0, layers=0), r"\(and 1 more\)"),
        (lambda: Model(layers=10**400), "layers: Input should be less than 2147483648, got 1000"),
        (lambda: Model(norm="x" * 10**6), "…"),
    ],
)
def test_bad_values_are_refused_on_one_line(make: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 3 * SHOWN


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Model().layers = 3  # type: ignore[misc]


def test_words_and_truths_are_no_numbers() -> None:
    for model in ({"heads": True}, {"layers": "4"}, {"d_model": False}):
        with pytest.raises(ConfigError, match=r"expected a number, got (True|False|'4')"):
            Model(**model)
    assert Model(layers=np.int64(3)).layers == 3  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"betas\.0: Input should be less than 1"):
        Training(betas=(1, 0.9))


def test_canonical_json_is_sorted_and_writes_defaults_out() -> None:
    text = Model().canonical_json()
    assert list(json.loads(text)) == sorted(Model.model_fields)
    assert " " not in text
    assert Model.from_json(text) == Model()


def test_fields_of_fields_have_names_with_dots() -> None:
    named = Experiment(seeds=(3,)).named()
    assert named["model.layers"] == Model().layers
    assert named["seeds"] == [3]
    assert "model" not in named


@given(st.text(max_size=300))
def test_long_texts_are_shortened_and_short_ones_are_not(text: str) -> None:
    short = shortened(text)
    assert short == text if len(text) <= SHOWN else short == text[:SHOWN] + "…"
