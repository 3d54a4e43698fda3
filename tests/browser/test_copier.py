"""The page's model of the n-gram experiment says what torch's says, at 1e-5."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from hopscope.configs import InductionModel, NgramExperiment, NgramProcess
from hopscope.configs.ngram import Descent
from hopscope.memory import Memory
from hopscope.ngram.evaluation import gih, model_answers
from hopscope.ngram.model import InductionTransformer
from hopscope.ngram.process import Chains
from hopscope.ngram.run import NgramRun
from hopscope.runs import train
from hopscope.store import Store, gallery
from hopscope.web.ngram import Ngram
from hopscope.web.tensors import unpacked

PREDICT = """async ([ngram, arrays, sets, tokens, epoch]) => {
  const { inductionHead, predict } = await import("/copier.js");
  const { at, epochs, model } = await import("/parameters.js");
  const values = Object.fromEntries(Object.entries(arrays).map(([name, [shape, data]]) =>
    [name, { shape, data: Float32Array.from(data) }]));
  const state = { about: { ngram }, values: { ...values, sets } };
  return [predict(tokens, ngram.alphabet, at(state, epochs(state).indexOf(epoch)), model(state)),
    inductionHead(tokens, ngram.alphabet, ngram.window, ngram.parents)];
}"""


def typed(process: NgramProcess, tokens: list[int]) -> Chains:
    """A sequence of one's own, as a chain of the process."""
    rows = process.alphabet ** len(process.parents)
    tables = np.full((1, rows, process.alphabet), 1 / process.alphabet)
    process = process.model_copy(update={"length": len(tokens)})
    return Chains(process, np.array([[*tokens, 0]], np.int8), tables)  # 0: is not read


def attention(run: NgramRun, epoch: int, tokens: list[int]) -> np.ndarray:
    """What the last layer attends to, by the model itself."""
    model = run.recipe.model
    module = InductionTransformer(model, run.recipe.process.alphabet)
    module.load_state_dict(
        {name: torch.from_numpy(np.asarray(its)) for name, its in run.state(0, epoch).items()}
    )
    seen = torch.tensor([tokens])
    places = range(model.window, len(tokens) + 1)
    with torch.no_grad():
        copied = [module.copies(*module.seen(seen, place)) for place in places]
        similar = torch.cat([module.similarity(each, copied[-1]) for each in copied[:-1]])
        found = torch.softmax(module.a * similar, dim=0).numpy()
    return np.pad(found, (model.window, 0))


def compared(page: Any, run: NgramRun, epoch: int, text: str) -> None:
    shown = Ngram(run.folder, Memory(2**20))
    arrays, told = unpacked(shown.arrays("parameters"))
    values = {name: [its.shape, its.ravel().tolist()] for name, its in arrays.items()}
    tokens = ["abcdef".index(letter) for letter in text]
    asked = [shown.description()["ngram"], values, told["sets"], tokens, epoch]
    model, head = page.evaluate(PREDICT, asked)
    chains = typed(run.recipe.process, tokens)
    (answer,) = model_answers(run.recipe, run.state(0, epoch), chains)
    np.testing.assert_allclose(model["answer"], answer, atol=1e-5)
    np.testing.assert_allclose(model["attention"], attention(run, epoch, tokens), atol=1e-5)
    lags = run.recipe.process.parents
    (answer,), (matched,) = gih(chains, run.recipe.model.window, lags)
    np.testing.assert_allclose(head["answer"], answer, atol=1e-5)
    hot = np.eye(run.recipe.process.alphabet)[tokens]
    np.testing.assert_allclose(head["attention"] @ hot, answer, atol=1e-5)
    assert bool(head["matches"]) == matched


def test_the_gallerys_model(blank: Any) -> None:
    for epoch in (0, 2000, 57000):
        for text in ("abcabcab", "aabbacbcaabcbcbbaacbabcc", "aabb"):
            compared(blank, NgramRun(gallery.find("ngram")), epoch, text)


def test_other_forms_of_it(blank: Any, tmp_path: Path) -> None:
    for form in ({"constant": True, "degree": 1}, {"unit_copies": True, "heads": 2, "window": 3}):
        recipe = NgramExperiment(
            process=NgramProcess(length=12),
            model=InductionModel(**form),
            descent=Descent(stages="CWa", epochs=(6,), chains=20, validation_chains=5, records=3),
        )
        compared(blank, NgramRun(train(recipe, Store(tmp_path)).folder), 6, "abcabbcacbbc")
