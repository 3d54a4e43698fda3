"""A benchmark of a language model on the page."""

import json

import pytest

from hopscope.configs import Asking, LmBench, Prompts
from hopscope.errors import ConfigError, RunDamaged
from hopscope.lm.results import results
from hopscope.store import Store
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

KINDS = (Prompts(formulation="f1", hops=1, chains=2), Prompts(formulation="f4", chains=2))
LABEL = KINDS[0].label


def line(index: int, right: float) -> bytes:
    chances = {"0": right, "1": 0.8 - right}
    answer = {"kind": LABEL, "index": index, "correct": "0", "probabilities": chances}
    return (json.dumps(answer) + "\n").encode()


HEADS = {
    "model": "x", "kind": LABEL, "questions": 4, "correct": 3, "switched_off": None,
    "routes": [{"route": "key 0 → query", "purpose": "look-up"}],
    "own": [[[0.1, 0.2], [0.9, 0.1]]], "others": [[[0.1, 0.1], [0.2, 0.1]]], "threshold": [0.3],
}  # fmt: skip


@pytest.fixture
def asked(store: Store) -> tuple[Views, str]:
    bench = LmBench(model="x", prompts=KINDS, questions=3, asking=Asking())
    folder = store.create(bench)
    folder.commit({"answers/all.jsonl": line(0, 0.6) + line(2, 0.2)})
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
    _, told = unpacked(views.example(id_, ExampleQuestion(index=2)))
    assert "What is the value of" in told["text"]
    printed = [told["text"][span["start"] : span["end"]] for span in told["spans"]]
    assert told["correct"] in printed
    assert told["right"] == pytest.approx(0.25)
    _, other = unpacked(views.example(id_, ExampleQuestion(kind="functions-n2")))
    assert (other["answer"], other["right"]) == (None, None)


def test_words_that_cannot_be_right_have_no_chance(store: Store) -> None:
    bench = LmBench(model="x", prompts=KINDS, questions=3, asking=Asking(protocol="greedy"))
    folder = store.create(bench)
    given = {
        "kind": LABEL,
        "index": 0,
        "correct": "0",
        "acceptable": ["0", "1"],
        "answer": None,
        "said": ["what?"],
    }
    folder.commit({"answers/all.jsonl": json.dumps(given).encode() + b"\n"})
    id_ = folder.name.rpartition("-")[2]
    _, told = unpacked(Views(store).example(id_, ExampleQuestion(index=0)))
    assert (told["answer"]["said"], told["right"]) == (["what?"], None)


def test_heads_are_shown_with_their_routes(asked: tuple[Views, str]) -> None:
    views, id_ = asked
    folder = views.shelf.folder(id_)
    assert views.run(id_)["heads"] == []
    folder.commit({f"heads-{LABEL}.json": json.dumps(HEADS).encode()})
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
        ({"index": 3}, "index is 3; the questions are 0 … 2"),
        ({"tokens": ("a",)}, "the questions of a benchmark cannot be changed"),
    ):
        with pytest.raises(ConfigError, match=line):
            views.example(id_, ExampleQuestion(**question))
    with pytest.raises(ConfigError, match="a run of kind lm has no arrays"):
        views.arrays(id_, "maps")
