"""A benchmark of a language model on the page."""

import pytest
from language import SPEECHLESS, benchmark, heads

from hopscope.configs import Prompts
from hopscope.errors import ConfigError, RunDamaged
from hopscope.lm.results import results
from hopscope.store import Store
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

KINDS = (Prompts(formulation="f1", hops=1, chains=2), Prompts(formulation="f4", chains=2))
LABEL = KINDS[0].label


@pytest.fixture
def asked(store: Store) -> tuple[Views, str]:
    first, third = (
        {"index": index, "probabilities": {"0": right, "1": 0.8 - right}}
        for index, right in ((0, 0.6), (2, 0.2))
    )
    folder = benchmark(store, first, third, kinds=KINDS)
    return Views(store), folder.name.rpartition("-")[2]


def test_accuracies_are_told_with_intervals(asked: tuple[Views, str]) -> None:
    views, id_ = asked
    found = views.run(id_)
    want = results(views.shelf.folder(id_))[0]
    assert found["results"][0]["accuracy"] == pytest.approx(want.accuracy) == pytest.approx(0.5)
    assert found["results"][0]["interval"] == list(want.interval)
    assert found["lm"]["kinds"] == [prompts.label for prompts in KINDS]


def test_a_question_is_told_with_its_answer(asked: tuple[Views, str]) -> None:
    views, id_ = asked
    _, told = unpacked(views.shown(id_).example(ExampleQuestion(index=2)))
    assert "What is the value of" in told["text"]
    printed = [told["text"][span["start"] : span["end"]] for span in told["spans"]]
    assert told["correct"] in printed
    assert told["right"] == pytest.approx(0.25)
    _, other = unpacked(views.shown(id_).example(ExampleQuestion(kind="functions-n2")))
    assert (other["answer"], other["right"]) == (None, None)


def test_words_that_cannot_be_right_have_no_chance(store: Store) -> None:
    folder = benchmark(store, SPEECHLESS, kinds=KINDS, protocol="greedy")
    id_ = folder.name.rpartition("-")[2]
    _, told = unpacked(Views(store).shown(id_).example(ExampleQuestion(index=0)))
    assert (told["answer"]["said"], told["right"]) == (["what?"], None)


def test_heads_are_shown_with_their_routes(asked: tuple[Views, str]) -> None:
    views, id_ = asked
    folder = views.shelf.folder(id_)
    assert views.run(id_)["heads"] == []
    folder.commit(heads(LABEL))
    route = views.run(id_)["heads"][0]["routes"][0]
    assert (route["layer"], route["head"], route["beyond"]) == (1, 0, 1)
    assert route["own"] == pytest.approx(0.9)
    views.shelf.folder(id_).commit({f"heads-{LABEL}.json": b"{}"})
    with pytest.raises(RunDamaged, match=r"holds no heads .*: `hopscope lm heads --keep"):
        views.run(id_)


def test_what_is_not_there_is_told(asked: tuple[Views, str]) -> None:
    views, id_ = asked
    for question, line in (
        ({"kind": "f9"}, "there are no questions 'f9' here; expected equations"),
        ({"index": 30}, "index is 30; the questions are 0 … 29"),
        ({"tokens": ("a",)}, "the questions of a benchmark cannot be changed"),
    ):
        with pytest.raises(ConfigError, match=line):
            views.shown(id_).example(ExampleQuestion(**question))
    with pytest.raises(ConfigError, match="a run of kind lm has no arrays"):
        views.shown(id_).arrays("maps")
