"""The page's model of the n-gram experiment says what torch's says, at 1e-5."""

from typing import Any

import numpy as np
import pytest

from hopscope.configs import InductionModel, NgramExperiment, NgramProcess
from hopscope.configs.ngram import Descent
from hopscope.runs import train
from hopscope.store import Store
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

PREDICT = """async ([tokens, alphabet, parameters, model, parents]) => {
  const { inductionHead, predict } = await import("/copier.js");
  return [predict(tokens, alphabet, parameters, model),
    inductionHead(tokens, alphabet, model.window, parents)];
}"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("runs"))


def compared(page: Any, views: Views, id_: str, epoch: int, typed: str) -> None:
    described = views.run(id_)["ngram"]
    arrays, _ = unpacked(views.arrays(id_, "parameters"))
    n = arrays["epochs"].tolist().index(epoch)
    parameters = {name: arrays[name][n].tolist() for name in ("c", "w", "a")}
    tokens = ["abcdef".index(letter) for letter in typed]
    asked = [tokens, described["alphabet"], parameters, described, described["parents"]]
    model, head = page.evaluate(PREDICT, asked)
    seen, told = unpacked(views.example(id_, ExampleQuestion(tokens=tuple(typed), step=epoch)))
    for found, answer, attention in ((model, "model", "attention"), (head, "gih", "gih_attention")):
        np.testing.assert_allclose(found["answer"], told["answers"][answer], atol=1e-5)
        np.testing.assert_allclose(found["attention"], seen[attention], atol=1e-5)
    assert bool(head["matches"]) == told["matched"]


def test_the_gallerys_model(page: Any, site: str, store: Store) -> None:
    page.goto(f"{site}/blank")
    for epoch in (0, 2000, 57000):
        for typed in ("abcabcab", "aabbacbcaabcbcbbaacbabcc", "aabb"):
            compared(page, Views(store), "gallery-ngram", epoch, typed)


def test_other_forms_of_it(page: Any, site: str, store: Store) -> None:
    page.goto(f"{site}/blank")
    for form in ({"constant": True, "degree": 1}, {"unit_copies": True, "heads": 2, "window": 3}):
        recipe = NgramExperiment(
            process=NgramProcess(length=12),
            model=InductionModel(**form),
            descent=Descent(stages="CWa", epochs=(6,), chains=20, validation_chains=5, records=3),
        )
        run = train(recipe, store)
        compared(page, Views(store), run.name.rpartition("-")[2], 6, "abcabbcacbbc")
