"""A first layer whose heads see every position: the same stages, and the module's own descent."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from hopscope.configs import NgramExperiment
from hopscope.ngram import evaluation, train
from hopscope.ngram.learner import batches, drawn
from hopscope.ngram.model import InductionTransformer, loss
from hopscope.ngram.parameters import Parameters
from hopscope.ngram.work import learner

Make = Callable[..., NgramExperiment]


def test_a_full_first_layer_learns_the_same(tmp_path: Path) -> None:
    chosen = NgramExperiment(
        model={"first": "full", "unit_copies": True},
        descent={"stages": "CWa", "epochs": (400,), "chains": 1_500, "records": 10},
        seeds=(5,),
    )
    run = train(chosen, tmp_path)
    state = run.state(5)
    picked = evaluation.choice(chosen.model, Parameters.of(state))
    assert picked.lags == (1, 2)
    assert picked.share > 0.99
    moments = evaluation.approach(run, 5)
    assert moments[-1].distance < 0.1 < moments[0].distance
    chains = drawn(chosen, 5, "validation")
    module = InductionTransformer(chosen.model, 3, 5)
    module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    with torch.no_grad():
        walked_answers = module(torch.from_numpy(chains.tokens[:, :-1].astype(np.int64))).numpy()
    np.testing.assert_allclose(evaluation.said(chosen, state, chains), walked_answers, atol=1e-10)


@pytest.mark.parametrize("batch", [None, 20])
def test_a_full_first_layer_descends_as_the_module_would(
    experiment: Make, batch: int | None
) -> None:
    chosen = experiment(model={"first": "full"}, descent={"chains": 40, "batch": batch})
    learning = learner(chosen, 2)
    module = InductionTransformer(chosen.model, 3, 2)
    tokens = torch.from_numpy(drawn(chosen, 2, "train").tokens.astype(np.int64))
    learning.begin("CWa")
    learning.advance(0)
    pieces = [np.arange(40)] if batch is None else batches(2, 0, 40, batch)
    for piece in pieces:
        value = loss(chosen.descent, module(tokens[piece, :-1]), tokens[piece, -1])
        slopes = torch.autograd.grad(value, list(module.parameters()))
        with torch.no_grad():
            for each, slope in zip(module.parameters(), slopes, strict=True):
                each.sub_(slope)
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(learning.state()[name], value.numpy(), atol=1e-12)
