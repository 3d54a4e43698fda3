"""Learners: which chains a batch visits."""

import numpy as np

from hopscope.markov.learner import batches


def test_batches_visit_every_chain_once() -> None:
    pieces = batches(0, 5, 100, 30)
    assert [len(piece) for piece in pieces] == [30, 30, 30, 10]
    assert sorted(np.concatenate(pieces)) == list(range(100))
    assert (np.concatenate(batches(0, 6, 100, 30)) != np.concatenate(pieces)).any()
