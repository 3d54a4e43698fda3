"""Learners: which chains a batch visits, and weights with which nothing can be learned."""

import numpy as np

from hopscope.configs import NgramExperiment
from hopscope.ngram.learner import CountingLearner, batches


def test_batches_visit_every_chain_once() -> None:
    pieces = batches(0, 5, 100, 30)
    assert [len(piece) for piece in pieces] == [30, 30, 30, 10]
    assert sorted(np.concatenate(pieces)) == list(range(100))
    assert (np.concatenate(batches(0, 6, 100, 30)) != np.concatenate(pieces)).any()


def test_a_selector_without_any_set_comes_to_what_is_not_a_number() -> None:
    """As a forged checkpoint may hold it: training finds it when its losses are recorded."""
    for letters in ("C", "W", "a", "CWa"):
        learner = CountingLearner(NgramExperiment(descent={"chains": 20}), 0)
        learner.restore({name: np.zeros_like(its) for name, its in learner.state().items()})
        learner.begin(letters)
        with np.errstate(all="ignore"):
            learner.advance(1)
            assert all(np.isnan(loss) for loss in learner.losses().values())
