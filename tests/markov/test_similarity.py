"""Similarities and their gradients by hand, against the model that walks and against autograd."""

import numpy as np
import pytest
import torch

from hopscope.configs import InductionModel
from hopscope.markov import matches
from hopscope.markov.model import InductionTransformer
from hopscope.markov.parameters import sets
from hopscope.markov.similarity import Similarity

WINDOW, ALPHABET = 3, 3


def patterns(unit: bool) -> tuple[np.ndarray, np.ndarray, matches.Matches]:
    """Two windows for each of several patterns, and the patterns' tables."""
    tokens = np.random.default_rng(1).integers(ALPHABET, size=(40, 2 * WINDOW + 1)).astype(np.int8)
    words = matches.found_patterns(tokens, WINDOW, unit)[:, :1]
    known = matches.distinct(words)
    first = [int(np.argmax((words[:, 0] == pattern).all(axis=1))) for pattern in known]
    keys, query = matches.windows(tokens, WINDOW)
    return keys[first, 0], query[first], matches.tables(known, WINDOW, unit)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_features_and_slopes_are_the_modules(unit: bool, constant: bool) -> None:
    config = InductionModel(window=WINDOW, unit_copies=unit, constant=constant)
    module = InductionTransformer(config, ALPHABET)
    generator = np.random.default_rng(0)
    with torch.no_grad():
        module.w.copy_(torch.from_numpy(generator.normal(size=module.w.shape)))
        module.c.copy_(torch.from_numpy(generator.normal(size=module.c.shape)))
    key, query, table = patterns(unit)
    assert len(table) > 10

    def copies(window: np.ndarray) -> torch.Tensor:
        symbols = torch.nn.functional.one_hot(torch.from_numpy(window.astype(np.int64)), ALPHABET)
        return module.copies(symbols.double(), torch.zeros(len(window), ALPHABET).double())

    expected = module.similarity(copies(key), copies(query))
    shares = (module.c**2 / (module.c**2).sum()).detach().numpy()
    similarity = Similarity(sets(config), unit, table)
    found = similarity.copies(module.w.detach().numpy())
    np.testing.assert_allclose(shares @ found.features, expected.detach().numpy(), atol=1e-12)

    weights = generator.normal(size=len(table))
    (expected * torch.from_numpy(weights)).sum().backward()
    slope = similarity.slope(found, shares, weights)
    assert module.w.grad is not None
    np.testing.assert_allclose(slope, module.w.grad.numpy(), atol=1e-12)


def test_heads_in_no_set_are_left_out() -> None:
    _, _, table = patterns(unit=False)
    similarity = Similarity([(2,), (0, 2)], False, table)
    assert similarity.heads == [0, 2]
    w = np.random.default_rng(0).normal(size=(3, WINDOW))
    other = w.copy()
    other[1] = 9
    np.testing.assert_array_equal(similarity.copies(w).features, similarity.copies(other).features)
