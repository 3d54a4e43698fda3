"""Which symbols of one window equal which symbols of another: all that a similarity depends on.

A head copies a mixture of the M symbols before a position, so that the similarity of a key
position with the query position depends on the M × M table of matches between their windows, and
on nothing else. For three symbols and M = 3 there are 110 such tables; with unit-length copies,
where matches inside either window count as well, 122. (Any alphabet: at most 128, and 203.)
"""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from jaxtyping import Bool, Float, Int, Int8, UInt64

WORD = 63
"""Bits of a pattern in one 64-bit word; the last bit stays free."""


@dataclass(frozen=True)
class Matches:
    """The distinct patterns of matches, as numbers 0 and 1, each an M × M table in a row."""

    cross: Float[np.ndarray, "pattern lags"]
    """Is the key's symbol at lag i the query's symbol at lag j?"""
    key: Float[np.ndarray, "pattern lags"]
    """Is the key's symbol at lag i the key's symbol at lag j?"""
    query: Float[np.ndarray, "pattern lags"]
    """Is the query's symbol at lag i the query's symbol at lag j?"""

    def __len__(self) -> int:
        return len(self.cross)


def windows(
    tokens: Int8[np.ndarray, "chain seq"], size: int
) -> tuple[Int8[np.ndarray, "chain key lag"], Int8[np.ndarray, "chain lag"]]:
    """The window of every position that has a whole one, and that of the position asked for."""
    views = np.lib.stride_tricks.sliding_window_view(tokens[:, :-1], size, axis=1)
    newest_first = views[:, :, ::-1]
    return newest_first[:, :-1], newest_first[:, -1]


def found_patterns(
    tokens: Int8[np.ndarray, "chain seq"], size: int, inside: bool
) -> UInt64[np.ndarray, "chain key word"]:
    """The pattern of each position, as bits; `inside` asks for matches within a window, too."""
    keys, query = windows(tokens, size)
    bits = [(keys[:, :, i], query[:, j, None]) for i, j in product(range(size), repeat=2)]
    if inside:
        pairs = list(combinations(range(size), 2))
        bits += [(keys[:, :, i], keys[:, :, j]) for i, j in pairs]
        bits += [(query[:, i, None], query[:, j, None]) for i, j in pairs]
    words = np.zeros((*keys.shape[:2], -(-len(bits) // WORD)), np.uint64)
    for number, (one, other) in enumerate(bits):
        word = words[:, :, number // WORD]
        word += (one == other).astype(np.uint64) << np.uint64(number % WORD)
    return words


def numbered(
    words: UInt64[np.ndarray, "chain key word"], known: UInt64[np.ndarray, "pattern word"]
) -> Int[np.ndarray, "chain key"]:
    """The place of each pattern among the known ones, which are sorted."""
    if words.shape[2] == 1:
        return np.searchsorted(known[:, 0], words[:, :, 0])
    order = {bytes(pattern): number for number, pattern in enumerate(known)}
    flat = [order[bytes(pattern)] for pattern in words.reshape(-1, words.shape[2])]
    return np.array(flat).reshape(words.shape[:2])


def distinct(words: UInt64[np.ndarray, "*axes word"]) -> UInt64[np.ndarray, "pattern word"]:
    """Each pattern among these once, in sorted order."""
    flat = words.reshape(-1, words.shape[-1])
    return np.unique(flat[:, 0])[:, None] if flat.shape[1] == 1 else np.unique(flat, axis=0)


def tables(patterns: UInt64[np.ndarray, "pattern word"], size: int, inside: bool) -> Matches:
    """Unpack patterns of bits into tables of zeros and ones."""
    square = size * size
    pairs = list(combinations(range(size), 2))
    count = square + 2 * len(pairs) * inside
    bits = np.stack([_bit(patterns, number) for number in range(count)], axis=1)
    within = [np.tile(np.eye(size), (len(patterns), 1, 1)) for _ in range(2)]
    if inside:
        for number, (i, j) in enumerate(pairs):
            for table, start in zip(within, (square, square + len(pairs)), strict=True):
                table[:, i, j] = table[:, j, i] = bits[:, start + number]
    key, query = (table.reshape(-1, square) for table in within)
    return Matches(bits[:, :square].astype(float), key, query)


def _bit(patterns: UInt64[np.ndarray, "pattern word"], number: int) -> Bool[np.ndarray, "pattern"]:
    bit: np.ndarray = patterns[:, number // WORD] >> np.uint64(number % WORD) & np.uint64(1)
    return bit.astype(bool)
