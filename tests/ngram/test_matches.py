"""Patterns of matches, symbol by symbol."""

import numpy as np
import pytest

from hopscope.ngram import matches


def tokens(alphabet: int = 3, length: int = 9) -> np.ndarray:
    return np.random.default_rng(0).integers(alphabet, size=(6, length)).astype(np.int8)


def test_windows_are_newest_first_and_the_last_is_asked() -> None:
    keys, query = matches.windows(np.array([[0, 1, 2, 3, 4]], np.int8), 2)
    assert keys.tolist() == [[[1, 0], [2, 1]]]
    assert query.tolist() == [[3, 2]]


@pytest.mark.parametrize(("size", "inside"), [(2, False), (3, True), (8, False), (7, True)])
def test_tables_say_which_symbols_are_equal(size: int, inside: bool) -> None:
    """Eight times eight bits need two words; so do 49 and twice 21."""
    chains = tokens(length=size + 5)
    words = matches.found_patterns(chains, size, inside)
    known = matches.distinct(words)
    number, table = matches.numbered(words, known), matches.tables(known, size, inside)
    keys, query = matches.windows(chains, size)
    assert len(table) == len(known) == len({tuple(row) for row in known.tolist()})
    for chain, place in np.ndindex(number.shape):
        pattern = number[chain, place]
        key, asked = keys[chain, place], query[chain]
        for i, j in np.ndindex(size, size):
            at = i * size + j
            assert table.cross[pattern, at] == (key[i] == asked[j])
            if inside:
                assert table.key[pattern, at] == (key[i] == key[j])
                assert table.query[pattern, at] == (asked[i] == asked[j])
