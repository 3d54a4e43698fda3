"""Rows that stand for many chains: few of them, and any of them alone."""

import numpy as np
import pytest

from hopscope.configs import MarkovProcess
from hopscope.markov.counts import counted
from hopscope.markov.process import sample_chains
from hopscope.markov.rows import merged, rows_of


def test_the_settings_of_the_paper_come_down_to_a_few_thousand_rows() -> None:
    chains = sample_chains(MarkovProcess(), 9_000, 0)
    counts, matches = counted(chains, 3)
    assert len(matches) == 110
    moving, still = merged(rows_of(counts, len(matches), every_symbol=False))
    assert len(moving) < 6_000
    assert moving.weight.sum() + still.weight.sum() == pytest.approx(1)


def test_a_subset_of_rows_is_those_chains_alone() -> None:
    chains = sample_chains(MarkovProcess(length=20), 12, 0)
    counts, matches = counted(chains, 3)
    rows = rows_of(counts, len(matches), every_symbol=False)
    chosen = np.array([7, 2, 11])
    weights = np.random.default_rng(0).random(len(matches))
    taken = rows.take(chosen, 1 / 3)
    np.testing.assert_array_equal(taken.times(weights), rows.times(weights)[:, chosen])
