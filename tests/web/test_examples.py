"""One example under the microscope, drawn or typed, with heads changed or not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from hopscope.circuits import Ablation, Ablator, adapter_of, examples_of
from hopscope.circuits.ablation import changes_of
from hopscope.circuits.tables import other_tables
from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.errors import ConfigError
from hopscope.runs import train
from hopscope.store import Store, gallery
from hopscope.training import Run
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

DEMO = "gallery-demo"
SHORT = Training(steps=1, batch=4, examples=8, validation_examples=4, precision="float32")


def hops(told: dict[str, Any], name: str) -> list[list[Any]]:
    return [[hop[name] for hop in answer["hops"]] for answer in told["answers"]]


def test_losses_of_an_example_are_those_among_others(views: Views) -> None:
    changes = ("0.1=mean", "2.0=position", "1.0:query=uniform")
    _, told = unpacked(views.shown(DEMO).example(ExampleQuestion(changes=changes)))
    run = Run(gallery.find("demo"))
    adapter, examples = adapter_of(run.model), examples_of(run.recipe.task, 64)
    ablator = Ablator(adapter, replace(examples, tables=other_tables(adapter, run.recipe.task)))
    both = [Ablation(), Ablation.of(changes_of(changes))]
    clean, changed = ablator.losses(both)[:, 0]
    np.testing.assert_allclose(np.mean(hops(told, "loss"), 0), clean, atol=1e-6)
    np.testing.assert_allclose(np.mean(hops(told["changes"], "loss"), 0), changed, atol=1e-6)


def test_a_model_follows_what_somebody_types(views: Views) -> None:
    _, told = unpacked(views.shown(DEMO).example(ExampleQuestion()))
    texts = [token["text"] for token in told["tokens"]]
    here = texts.index("a1", 8)  # behind a0, where the first hops are told
    texts[here] = "c1"
    _, typed = unpacked(views.shown(DEMO).example(ExampleQuestion(tokens=tuple(texts))))
    asked = next(a for a in typed["answers"] if texts[a["position"]] == "a0")
    assert [hop["truth"] for hop in asked["hops"]] == ["c1", "c2"]
    assert [hop["answer"] for hop in asked["hops"]] == ["c1", "c2"]
    texts[here] = "a2"
    _, lost = unpacked(views.shown(DEMO).example(ExampleQuestion(tokens=tuple(texts))))
    asked = next(a for a in lost["answers"] if texts[a["position"]] == "a0")
    assert [(hop["truth"], hop["right"], hop["loss"]) for hop in asked["hops"]][1] == (None,) * 3


def test_letters_are_typed_into_a_khop_model(store: Store) -> None:
    task, model = KHop(hops=2, alphabet=4, length=10), Model(layers=2, heads=2, d_model=16)
    run = train(Experiment(task=task, model=model, training=SHORT), store)
    id_ = run.name.rpartition("-")[2]
    typed = ExampleQuestion(tokens=tuple("dcabacabba"), changes=("0.0=mean",))
    _, told = unpacked(Views(store).shown(id_).example(typed))
    assert told["answers"][0]["position"] == 9
    assert hops(told, "truth") == [["b", "a"]]  # behind the a at 6; behind the b at 3
    assert told["tokens"][9]["role"] == "query"
    with torch.no_grad():
        out = run.model(torch.tensor([[3, 2, 0, 1, 0, 2, 0, 1, 1, 0]]))[0, -1].double()
    chances = out.view(2, 5).softmax(-1)
    np.testing.assert_allclose(hops(told, "probability")[0], chances.max(-1).values, atol=1e-6)
    np.testing.assert_allclose(hops(told, "loss")[0], -chances[[0, 1], [1, 0]].log(), atol=1e-5)
    with pytest.raises(ConfigError, match="there is no symbol 'e' here; the symbols are a, b, c"):
        Views(store).shown(id_).example(ExampleQuestion(tokens=tuple("dcabacabbe")))
