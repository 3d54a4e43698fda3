"""One example under the microscope, drawn or typed, with heads changed or not."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from hopscope.circuits import Ablation, Ablator, exam_of, subject_of
from hopscope.circuits.changes import changes_of
from hopscope.cli.main import run as command
from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.errors import CircuitError, ConfigError
from hopscope.runs import train
from hopscope.store import Store, gallery
from hopscope.training import Run
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

DEMO = "gallery-demo"
SHORT = Training(steps=1, batch=4, examples=8, validation_examples=4, precision="float32")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("tokens") / "runs")


@pytest.fixture(scope="module")
def views(store: Store) -> Views:
    return Views(store)


def trained(store: Store, task: KHop) -> str:
    recipe = Experiment(task=task, model=Model(layers=2, heads=2, d_model=16), training=SHORT)
    train(recipe, store)
    return recipe.run_name().rpartition("-")[2]


def hops(told: dict[str, Any], name: str) -> list[list[Any]]:
    return [[hop[name] for hop in answer["hops"]] for answer in told["answers"]]


def test_attention_is_that_of_the_command(views: Views, capsys: pytest.CaptureFixture[str]) -> None:
    arrays, _ = unpacked(views.example(DEMO, ExampleQuestion(index=3, step=600)))
    flags = ("--step", "600", "--example", "3", "--json")
    assert command(("maps", "gallery/demo", *flags)) == 0
    wanted = np.array(json.loads(capsys.readouterr().out)["attention"], np.float16)
    np.testing.assert_allclose(arrays["attention"].astype(float), wanted.astype(float), atol=1e-3)


def test_losses_of_an_example_are_those_among_others(views: Views) -> None:
    changes = ("0.1=mean", "2.0=position", "1.0:query=uniform")
    _, told = unpacked(views.example(DEMO, ExampleQuestion(changes=changes)))
    run = Run(gallery.find("demo"))
    ablator = Ablator(subject_of(run.model), exam_of(run.recipe.task, 64))
    both = [Ablation(), Ablation.of(changes_of(changes))]
    clean, changed = ablator.losses(both)[:, 0]
    np.testing.assert_allclose(np.mean(hops(told, "loss"), 0), clean, atol=1e-6)
    np.testing.assert_allclose(np.mean(hops(told["changes"], "loss"), 0), changed, atol=1e-6)


def test_the_same_symbols_in_another_order_have_the_same_answers(views: Views) -> None:
    _, told = unpacked(views.example(DEMO, ExampleQuestion(index=1)))
    _, other = unpacked(views.example(DEMO, ExampleQuestion(index=1, order=12)))
    texts = [[token["text"] for token in each["tokens"]] for each in (told, other)]
    assert texts[0] != texts[1]
    assert sorted(texts[0]) == sorted(texts[1])
    assert all(all(rights) for rights in hops(other, "right"))


def test_a_model_follows_what_somebody_types(views: Views) -> None:
    _, told = unpacked(views.example(DEMO, ExampleQuestion()))
    texts = [token["text"] for token in told["tokens"]]
    here = texts.index("a1", 8)  # behind a0, where the first hops are told
    texts[here] = "c1"
    _, typed = unpacked(views.example(DEMO, ExampleQuestion(tokens=tuple(texts))))
    asked = next(a for a in typed["answers"] if texts[a["position"]] == "a0")
    assert [hop["truth"] for hop in asked["hops"]] == ["c1", "c2"]
    assert [hop["answer"] for hop in asked["hops"]] == ["c1", "c2"]
    texts[here] = "a2"
    _, lost = unpacked(views.example(DEMO, ExampleQuestion(tokens=tuple(texts))))
    asked = next(a for a in lost["answers"] if texts[a["position"]] == "a0")
    assert [(hop["truth"], hop["right"], hop["loss"]) for hop in asked["hops"]][1] == (None,) * 3


def test_letters_are_typed_into_a_khop_model(store: Store, views: Views) -> None:
    task = KHop(hops=2, alphabet=4, length=10)
    id_ = trained(store, task)
    typed = ExampleQuestion(tokens=tuple("dcabacabba"), changes=("0.0=mean",))
    arrays, told = unpacked(views.example(id_, typed))
    assert told["answers"][0]["position"] == 9
    assert hops(told, "truth") == [["b", "a"]]  # behind the a at 6; behind the b at 3
    assert told["tokens"][9]["role"] == "query"
    assert arrays["inputs"].tolist() == [3, 2, 0, 1, 0, 2, 0, 1, 1, 0]
    model = Run(store.find(id_)).model
    with torch.no_grad():
        out = model(torch.tensor(arrays["inputs"].tolist())[None])[0, -1].double()
    chances = out.view(2, 5).softmax(-1)
    np.testing.assert_allclose(hops(told, "probability")[0], chances.max(-1).values, atol=1e-6)
    np.testing.assert_allclose(hops(told, "loss")[0], -chances[[0, 1], [1, 0]].log(), atol=1e-5)
    with pytest.raises(ConfigError, match="there is no symbol 'e' here; the symbols are a, b, c"):
        views.example(id_, ExampleQuestion(tokens=tuple("dcabacabbe")))


def test_changes_that_cannot_be_made_are_refused(views: Views) -> None:
    for change, said in (
        ("9.9=uniform", r"there is no head 9\.9; this model has layers 0"),
        ("0.9=mean", r"there is no head 0\.9; this model has layers 0"),
        ("9.0:query=uniform", r"there is no head 9\.0; this model has layers 0"),
        ("1.3=value 1<query", r"1\.3: value 1 cannot read query, which comes after it in every"),
    ):
        with pytest.raises(CircuitError, match=said):
            views.example(DEMO, ExampleQuestion(changes=(change,)))
