"""Chains as counts: how often each symbol follows each pattern of matches with the query.

The model's answer to a chain is a ratio of sums over positions, and positions with the same
pattern have the same similarity. So a chain can be stored as a short list of patterns, each with
the number of times that each symbol followed it. This is not an approximation: only the order of
summation changes.

A head copies a mixture of the M symbols before a position. Therefore the similarity of a key
position with the query position depends only on the M × M table of matches between their windows.
For three symbols and M = 3 there are 110 such tables; with unit-length copies, where matches inside
each window also matter, 122. (For any alphabet: at most 128, or 203.)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from jaxtyping import Bool, Float, Int, Int8

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError
from hopscope.machine import memory_bytes
from hopscope.ngram.process import ChainTokens

PerPattern = Float[np.ndarray, "pattern"]
Sums = Float[np.ndarray, "column row"]
"""For each row, the sums of its counts weighted by attention."""

BYTES_PER_POSITION = 64
"""The memory per position while chains are counted; measured."""


@dataclass(frozen=True)
class Rows:
    """Chains as rows of counts, with an entry for each pattern that occurs in a chain."""

    start: Int[np.ndarray, "row_and_end"]
    """The index of the first entry of each row; the last element is the number of entries."""
    pattern: Int[np.ndarray, "entry"]
    counts: Float[np.ndarray, "column entry"]
    """How often each symbol followed the pattern (other columns after `for_loss`)."""
    weight: Float[np.ndarray, "row"]
    """The weight of each row in a mean."""
    patterns: int

    def __len__(self) -> int:
        return len(self.weight)

    @cached_property
    def row(self) -> Int[np.ndarray, "entry"]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def sums(self, scaled: PerPattern) -> tuple[Sums, Float[np.ndarray, "entry"]]:
        """For each row, the sums of counts weighted by attention e^scaled; and the attention of
        each entry.

        The exponents of each row are shifted by their maximum, so that no row underflows.
        """
        own = scaled[self.pattern]
        attention = np.exp(own - np.maximum.reduceat(own, self.start[:-1])[self.row])
        return np.add.reduceat(self.counts * attention, self.start[:-1], axis=1), attention

    def back(self, slope: Sums, attention: Float[np.ndarray, "entry"]) -> PerPattern:
        """The derivative with respect to the scaled similarities, from that with respect to the
        sums.
        """
        spread = (slope.take(self.row, axis=1) * self.counts).sum(axis=0) * attention
        return np.bincount(self.pattern, spread, minlength=self.patterns)

    def answers(self, scaled: PerPattern) -> Float[np.ndarray, "row column"]:
        """The predicted distribution of the next symbol for each chain, with attention e^scaled."""
        sums, _ = self.sums(scaled)
        answers: np.ndarray = (sums / sums.sum(axis=0)).T
        return answers

    def take(
        self, chosen: Int[np.ndarray, "some"], weight: Float[np.ndarray, "some"] | None = None
    ) -> "Rows":
        """Some of the rows, with these weights (default: equal ones that sum to 1)."""
        sizes = np.diff(self.start)[chosen]
        start = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(start[-1]) + np.repeat(self.start[chosen] - start[:-1], sizes)
        equal = np.full(len(chosen), 1 / max(1, len(chosen)))
        return Rows(
            start=start,
            pattern=self.pattern[entries],
            counts=self.counts.take(entries, axis=1),
            weight=equal if weight is None else weight,
            patterns=self.patterns,
        )

    def for_loss(self, targets: Int[np.ndarray, "row"], every_symbol: bool) -> "Rows":
        """The same rows with the columns that a loss needs.

        The first column is the count of the target. The second is the total count, or with
        `every_symbol` the other columns are the counts of the other symbols.
        """
        target, entry = targets.astype(np.int64)[self.row], np.arange(len(self.pattern))
        hits = self.counts[target, entry]
        if every_symbol:
            counts = self.counts.copy()
            counts[target, entry] = counts[0]
            counts[0] = hits
        else:
            counts = np.stack([hits, self.counts.sum(axis=0)])
        return Rows(self.start, self.pattern, counts, self.weight, self.patterns)


def merged(rows: Rows) -> tuple[Rows, Rows]:
    """The rows whose answers depend on attention, with equal ones merged; and all other rows.

    An answer does not depend on attention if the columns have the same proportion in every entry,
    e.g. because the chain has only one symbol. Rows are equal if they differ by a factor.
    """
    total, sums = rows.counts.sum(axis=0), np.add.reduceat(rows.counts, rows.start[:-1], axis=1)
    proportional = rows.counts * sums.sum(axis=0)[rows.row] == total * sums[:, rows.row]
    fixed = np.minimum.reduceat(proportional.all(axis=0), rows.start[:-1])
    first: dict[bytes, int] = {}
    weight = rows.weight.copy()
    for row in np.flatnonzero(~fixed).tolist():
        span = slice(rows.start[row], rows.start[row + 1])
        counts = rows.counts[:, span].astype(np.int64)
        reduced = counts // np.gcd.reduce(counts, axis=None)
        same = first.setdefault(rows.pattern[span].tobytes() + reduced.tobytes(), row)
        if same != row:
            weight[same] += weight[row]
    moving, still = np.array(list(first.values()), np.int64), np.flatnonzero(fixed)
    return rows.take(moving, weight[moving]), rows.take(still, weight[still])


@dataclass(frozen=True)
class Matches:
    """Patterns of matches as zeros and ones, each an M × M table (lag i, lag j) in a row."""

    cross: Float[np.ndarray, "pattern lags"]
    """1 if the key's symbol at lag i equals the query's symbol at lag j."""
    key: Float[np.ndarray, "pattern lags"]
    """1 if the key's symbol at lag i equals the key's symbol at lag j."""
    query: Float[np.ndarray, "pattern lags"]
    """1 if the query's symbol at lag i equals the query's symbol at lag j."""

    def __len__(self) -> int:
        return len(self.cross)

    @classmethod
    def between(
        cls, keys: Int[np.ndarray, "pattern lag"], queries: Int[np.ndarray, "pattern lag"]
    ) -> "Matches":
        """The matches between the windows of keys and of queries, and inside each."""
        return cls(_equal(keys, queries), _equal(keys, keys), _equal(queries, queries))

    def at(self, lags: Iterable[int]) -> Bool[np.ndarray, "pattern"]:
        """True for patterns whose symbols at all of these lags equal the query's."""
        size = round(self.cross.shape[1] ** 0.5)
        matching: np.ndarray = np.all(self.cross[:, [(lag - 1) * (size + 1) for lag in lags]], 1)
        return matching


def _equal(
    one: Int[np.ndarray, "pattern lag"], other: Int[np.ndarray, "pattern lag"]
) -> Float[np.ndarray, "pattern lags"]:
    equal: np.ndarray = one[:, :, None] == other[:, None]
    return equal.reshape(len(one), -1).astype(float)


def windows(
    tokens: ChainTokens, size: int
) -> tuple[Int8[np.ndarray, "chain key lag"], Int8[np.ndarray, "chain lag"]]:
    """The window of every position with a complete window, and that of the query position.

    The newest symbol (lag 1) comes first. The last symbol of a chain, the target, is in no window.
    """
    views = np.lib.stride_tricks.sliding_window_view(tokens[:, :-1], size, axis=1)
    newest_first = views[:, :, ::-1]
    return newest_first[:, :-1], newest_first[:, -1]


def pattern_counts(
    tokens: ChainTokens, alphabet: int, window: int, inside: bool = False
) -> tuple[Rows, Matches]:
    """Chains as counts over patterns of matches, and the patterns.

    With `inside`, patterns also include the matches inside each window.
    """
    keys, query = windows(tokens, window)
    symbols = [(keys[:, :, i], query[:, j, None]) for i, j in product(range(window), repeat=2)]
    if inside:
        for i, j in combinations(range(window), 2):
            symbols.append((keys[:, :, i], keys[:, :, j]))
            symbols.append((query[:, i, None], query[:, j, None]))
    rows, first = tallied(tokens, alphabet, window, ((one == other) for one, other in symbols), 2)
    chain, position = np.divmod(first, keys.shape[1])
    return rows, Matches.between(keys[chain, position], query[chain])


def tallied(
    tokens: ChainTokens, alphabet: int, window: int, digits: Iterable[np.ndarray], base: int
) -> tuple[Rows, Int[np.ndarray, "pattern"]]:
    """Counts over patterns, each given by a list of digits at every position; and the position (an
    index into the flattened positions) at which each pattern first occurs.
    """
    number, most = np.zeros((len(tokens), tokens.shape[1] - 1 - window), np.int64), 1
    for digit in digits:
        if most * base > 2**62:
            number = np.unique(number, return_inverse=True)[1].reshape(number.shape)
            most = int(number.max()) + 1
        number *= base
        number += digit
        most *= base
    known, first, number = np.unique(number, return_index=True, return_inverse=True)
    patterns, chains = len(known), len(tokens)
    number = number.reshape(chains, -1)
    number += np.arange(chains)[:, None] * patterns  # in place: these are the largest arrays
    entries, entry = np.unique(number, return_inverse=True)
    following = tokens[:, window:-1].astype(np.int64)
    cells = following.ravel() * len(entries) + entry.ravel()
    rows = Rows(
        start=np.searchsorted(entries, np.arange(chains + 1) * patterns),
        pattern=entries % patterns,
        counts=np.bincount(cells, minlength=alphabet * len(entries)).reshape(alphabet, -1) * 1.0,
        weight=np.full(chains, 1 / chains),
        patterns=patterns,
    )
    return rows, first


def check_memory(experiment: NgramExperiment) -> None:
    """Raise ConfigError, before chains are drawn, if this machine cannot hold them."""
    process, descent = experiment.process, experiment.descent
    chains, seeds = descent.chains + descent.validation_chains, len(experiment.seeds)
    tables = 8 * 3 * chains * process.alphabet ** (len(process.parents) + 1)
    needed = tables + BYTES_PER_POSITION * chains * process.length * seeds
    memory = memory_bytes()
    if needed > memory:
        each = f" for each of {seeds} seeds" if seeds > 1 else ""
        raise ConfigError(
            f"{chains:,} chains of {process.length:,} symbols{each} need about "
            f"{needed / 2**30:,.0f} GiB ({tables / 2**30:,.0f} of them for transition tables); "
            f"this machine has {memory / 2**30:,.0f}: take fewer chains, seeds or parents"
        )
