"""The n-gram experiment on the page: parameters, predictions, what is attended to."""

from typing import Any

import numpy as np
import pytest

from hopscope.configs import InductionModel, NgramExperiment, NgramProcess
from hopscope.configs.ngram import Descent
from hopscope.errors import ConfigError
from hopscope.ngram.evaluation import bayes, gih, model_answers
from hopscope.ngram.run import NgramRun
from hopscope.ngram.trainer import drawn
from hopscope.runs import train
from hopscope.store import Store, gallery
from hopscope.web.questions import AblateQuestion, ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

NGRAM = "gallery-ngram"


@pytest.fixture(scope="module")
def run() -> NgramRun:
    return NgramRun(gallery.find("ngram"))


def hot(told: dict[str, Any]) -> np.ndarray:
    """The symbols of an example, one-hot."""
    return np.eye(3)[[told["symbols"].index(token["text"]) for token in told["tokens"]]]


def test_all_parameters_are_there_at_every_epoch(views: Views, run: NgramRun) -> None:
    arrays, told = unpacked(views.arrays(NGRAM, "parameters"))
    course = run.course(0)
    np.testing.assert_array_equal(arrays["epochs"], course.epochs)
    for name in ("c", "w", "a"):
        np.testing.assert_allclose(arrays[name], getattr(course, name), rtol=1e-6, atol=1e-30)
    assert told["sets"][-1] == "{2,3}"
    np.testing.assert_allclose(arrays["attention"].sum(-1), 1, rtol=1e-6)


def test_predictions_are_those_of_the_model(views: Views, run: NgramRun) -> None:
    chains = drawn(run.recipe, 0, "validation")
    for epoch in (None, 0, 2000):
        arrays, told = unpacked(views.example(NGRAM, ExampleQuestion(index=7, step=epoch)))
        model = model_answers(run.recipe, run.state(0, epoch), chains)[7]
        answers = told["answers"]
        np.testing.assert_allclose(answers["model"], model, atol=1e-6)
        np.testing.assert_allclose(answers["gih"], gih(chains, 3, (1, 2))[0][7], atol=1e-12)
        np.testing.assert_allclose(answers["bayes"], bayes(chains)[7], atol=1e-12)
        np.testing.assert_allclose(answers["truth"], chains.truth()[7], atol=1e-12)
        # What the last layer attends to is what is predicted; so it is for the ideal head.
        np.testing.assert_allclose(arrays["attention"] @ hot(told), model, atol=1e-5)
        np.testing.assert_allclose(arrays["gih_attention"] @ hot(told), answers["gih"], atol=1e-6)


def test_a_typed_sequence_is_continued_like_the_induction_head(views: Views) -> None:
    """What copiers copy is their attention to lags."""
    arrays, told = unpacked(views.example(NGRAM, ExampleQuestion(tokens=tuple("abcabcab"))))
    for number, place in enumerate(range(3, 9)):
        window = hot(told)[place - 3 : place][::-1]
        copied = arrays["copiers"] @ window
        np.testing.assert_allclose(arrays["copied"][:, number], copied, atol=1e-6)
    assert told["matched"]
    assert told["answers"]["gih"] == [0, 0, 1]
    assert "truth" not in told["answers"]
    assert told["answers"]["model"][2] > 0.9
    _, alone = unpacked(views.example(NGRAM, ExampleQuestion(tokens=tuple("aabb"))))
    assert not alone["matched"]


REFUSED = (
    ({"tokens": tuple("abcd")}, "there is no symbol 'd' here; the symbols are a, b, c"),
    ({"tokens": tuple("abc")}, "the sequence has 3 symbols; expected at least 4"),
    ({"index": 1000}, "index is 1000; the validation chains are 0 … 999"),
    ({"step": 60000}, "step is 60000; gallery/ngram has no check.*nearest is 57000"),
    ({"changes": ("0.0=mean",)}, "heads of the n-gram model cannot be changed"),
)


def test_what_is_not_there_is_told(views: Views) -> None:
    for asked, line in REFUSED:
        with pytest.raises(ConfigError, match=line):
            views.example(NGRAM, ExampleQuestion(**asked))
    with pytest.raises(ConfigError, match="gallery/ngram is a run of kind ngram, which has no abl"):
        views.ablate(NGRAM, AblateQuestion(), lambda: False)


def test_a_full_first_layer_is_looked_at_where_it_is_kept(store: Store) -> None:
    recipe = NgramExperiment(
        process=NgramProcess(length=12),
        model=InductionModel(first="full", heads=2, window=2),
        descent=Descent(stages="CWa", epochs=(6,), chains=20, validation_chains=5, records=3),
        seeds=(3, 5),
    )
    run = train(recipe, store)
    found = Views(store).example(run.name.rpartition("-")[2], ExampleQuestion(seed=5, index=4))
    arrays, told = unpacked(found)
    model = model_answers(recipe, run.state(5), drawn(recipe, 5, "validation"))[4]
    np.testing.assert_allclose(told["answers"]["model"], model, atol=1e-6)
    np.testing.assert_allclose(arrays["attention"] @ hot(told), model, atol=1e-5)
