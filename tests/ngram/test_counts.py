"""Chains as counts: a chain's answer is that of its positions, also of some chains alone."""

import numpy as np

from hopscope.configs import NgramProcess
from hopscope.ngram import matches
from hopscope.ngram.counts import counted
from hopscope.ngram.dense import SMALL, product
from hopscope.ngram.process import sample_chains
from hopscope.ngram.rows import rows_of


def test_attention_over_counts_is_attention_over_positions() -> None:
    chains, window = sample_chains(NgramProcess(length=30), 5, 1), 3
    counts, table = counted(chains, window)
    scaled = np.random.default_rng(0).normal(scale=200, size=len(table))  # e^200 does not fit
    words = matches.found_patterns(chains.tokens, window, inside=False)
    number = matches.numbered(words, matches.distinct(words))
    found = counts.attended(scaled)
    for chain in range(5):
        own = scaled[number[chain]]
        weights = np.exp(own - own.max())
        followed = np.eye(3)[chains.tokens[chain, window:-1]]
        np.testing.assert_allclose(found[chain], weights @ followed / weights.sum(), atol=1e-12)


def test_a_subset_of_rows_is_those_chains_alone() -> None:
    chains = sample_chains(NgramProcess(length=20), 12, 0)
    counts, table = counted(chains, 3)
    rows = rows_of(counts, len(table), every_symbol=False)
    chosen = np.array([7, 2, 11])
    weights = np.random.default_rng(0).random(len(table))
    taken = rows.take(chosen, 1 / 3)
    np.testing.assert_array_equal(taken.times(weights), rows.times(weights)[:, chosen])


def test_products_of_either_library_are_sums_of_products() -> None:
    for rows in (1, SMALL, SMALL + 1):
        generator = np.random.default_rng(rows)
        one, other = generator.random((rows, 3)), generator.random((3, 4))
        expected = sum(one[:, k, None] * other[k] for k in range(3))
        found = product(one, other)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert found.dtype == np.float64
