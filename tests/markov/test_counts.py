"""Chains as counts: nothing is lost, and a chain's answer is that of its positions."""

import numpy as np

from hopscope.configs import MarkovProcess
from hopscope.markov import matches
from hopscope.markov.counts import counted
from hopscope.markov.process import sample_chains


def test_every_position_is_counted_once_under_its_pattern() -> None:
    chains, window = sample_chains(MarkovProcess(length=20), 7, 0), 3
    counts, table = counted(chains, window)
    assert len(counts) == 7
    assert counts.targets.tolist() == chains.targets.tolist()
    positions = chains.tokens.shape[1] - 1 - window
    words = matches.found_patterns(chains.tokens, window, inside=False)
    number = matches.numbered(words, matches.distinct(words))
    for chain in range(7):
        own = slice(counts.start[chain], counts.start[chain + 1])
        assert counts.symbols[own].sum() == positions
        for pattern, symbols in zip(counts.pattern[own], counts.symbols[own], strict=True):
            at = np.flatnonzero(number[chain] == pattern) + window
            followed = np.bincount(chains.tokens[chain, at], minlength=3)
            assert symbols.tolist() == followed.tolist()
    assert counts.pattern.max() == len(table) - 1
    assert counts.chain().tolist() == np.repeat(np.arange(7), np.diff(counts.start)).tolist()


def test_attention_over_counts_is_attention_over_positions() -> None:
    chains, window = sample_chains(MarkovProcess(length=30), 5, 1), 3
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
