"""Sums over the entries of every chain, and their gradients: the only work that grows with data.

`Rows` says it in NumPy, for any subset of chains. `Products` is the same for all of them at once,
with sparse matrices where torch can multiply them (with MKL).
"""

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from hopscope.ngram.counts import Counts


@dataclass(frozen=True)
class Rows:
    """Chains as rows of a sparse matrix.

    Column 0 counts the target, the last one everything, and those between, if there are any, the
    other symbols.
    """

    start: Int[np.ndarray, "row_and_end"]
    pattern: Int[np.ndarray, "entry"]
    numbers: Float[np.ndarray, "column entry"]
    weight: Float[np.ndarray, "row"]
    """How much the row counts in the mean loss."""
    patterns: int

    def __len__(self) -> int:
        return len(self.weight)

    def times(self, weights: Float[np.ndarray, "pattern"]) -> Float[np.ndarray, "column row"]:
        """Every row's sums of weighed counts."""
        return np.add.reduceat(self.numbers * weights[self.pattern], self.start[:-1], axis=1)

    def back(self, gradient: Float[np.ndarray, "column row"]) -> Float[np.ndarray, "pattern"]:
        """The transposed product."""
        each = np.repeat(gradient, np.diff(self.start), axis=1)
        spread = (each * self.numbers).sum(axis=0)
        return np.bincount(self.pattern, spread, minlength=self.patterns)

    def attended(
        self, scaled: Float[np.ndarray, "pattern"]
    ) -> tuple[Float[np.ndarray, "column row"], Float[np.ndarray, "entry"]]:
        """The sums for attention e^scaled, each row's exponents shifted by its largest; and the
        attention of every entry. For exponents so far apart that one shift would lose rows.
        """
        own = scaled[self.pattern]
        largest = np.maximum.reduceat(own, self.start[:-1])
        weights = np.exp(own - np.repeat(largest, np.diff(self.start)))
        return np.add.reduceat(self.numbers * weights, self.start[:-1], axis=1), weights

    def spread(
        self, gradient: Float[np.ndarray, "column row"], weights: Float[np.ndarray, "entry"]
    ) -> Float[np.ndarray, "pattern"]:
        """Back from the sums that `attended` gave to the exponents."""
        each = np.repeat(gradient, np.diff(self.start), axis=1)
        slopes = (each * self.numbers).sum(axis=0) * weights
        return np.bincount(self.pattern, slopes, minlength=self.patterns)

    def take(self, chosen: Int[np.ndarray, "some"], weight: float) -> "Rows":
        """Some of the rows, all with the same weight."""
        sizes = np.diff(self.start)[chosen]
        start = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(start[-1]) + np.repeat(self.start[chosen] - start[:-1], sizes)
        return Rows(
            start=start,
            pattern=self.pattern[entries],
            numbers=self.numbers[:, entries],
            weight=np.full(len(chosen), weight),
            patterns=self.patterns,
        )


def rows_of(counts: Counts, patterns: int, every_symbol: bool) -> Rows:
    """A row for every chain, all of the same weight."""
    return Rows(
        start=counts.start,
        pattern=counts.pattern,
        numbers=_numbers(counts, every_symbol),
        weight=np.full(len(counts), 1 / len(counts)),
        patterns=patterns,
    )


def _numbers(counts: Counts, every_symbol: bool) -> Float[np.ndarray, "column entry"]:
    target = counts.targets[counts.chain()]
    entry, total = np.arange(len(target)), counts.symbols.sum(axis=1)
    hits = counts.symbols[entry, target]
    if not every_symbol:
        return np.stack([hits, total]).astype(float)
    others = counts.symbols.copy()
    others[entry, target] = others[:, 0]  # the first symbol moves to where the target was
    return np.concatenate([[hits], others[:, 1:].T, [total]]).astype(float)


def merged(rows: Rows) -> tuple[Rows, Rows]:
    """The rows with equal ones merged, without those no weights can change; and these.

    A row cannot change if every pattern in it is followed by the symbols in equal proportions, e.g.
    because its chain knows one symbol only. Rows are equal if they differ by a factor.
    """
    whole = rows.times(np.ones(rows.patterns))
    entry_row = np.repeat(np.arange(len(rows)), np.diff(rows.start))
    proportional = rows.numbers * whole[-1, entry_row] == rows.numbers[-1] * whole[:, entry_row]
    fixed = np.minimum.reduceat(proportional.all(axis=0), rows.start[:-1])
    moving, still = np.flatnonzero(~fixed), np.flatnonzero(fixed)
    first: dict[bytes, int] = {}
    weight = rows.weight.copy()
    for row in moving.tolist():
        span = slice(rows.start[row], rows.start[row + 1])
        numbers = rows.numbers[:, span].astype(np.int64)
        reduced = numbers // np.gcd.reduce(numbers, axis=None)
        kept = first.setdefault(rows.pattern[span].tobytes() + reduced.tobytes(), row)
        if kept != row:
            weight[kept] += weight[row]
    return _weighed(rows, np.array(list(first.values()), np.int64), weight), _weighed(
        rows, still, weight
    )


def _weighed(rows: Rows, chosen: Int[np.ndarray, "some"], weight: np.ndarray) -> Rows:
    taken = rows.take(chosen, 0.0)
    taken.weight[:] = weight[chosen]
    return taken


class Products:
    """The sums of all rows as sparse products."""

    def __init__(self, rows: Rows) -> None:
        self.shape = (len(rows.numbers), len(rows))
        columns = len(rows.numbers)
        row = np.repeat(np.arange(len(rows)), np.diff(rows.start))
        stacked = (row + np.arange(columns)[:, None] * len(rows)).ravel()
        pattern, values = np.tile(rows.pattern, columns), rows.numbers.ravel()
        kept = values != 0
        size = (columns * len(rows), rows.patterns)
        self.forward = _csr(stacked[kept], pattern[kept], values[kept], size)
        self.backward = _csr(pattern[kept], stacked[kept], values[kept], size[::-1])

    def times(self, weights: Float[np.ndarray, "pattern"]) -> Float[np.ndarray, "column row"]:
        """Every row's sums of counts, weighed by the weight of each pattern; as `Rows.times`."""
        sums: np.ndarray = torch.mv(self.forward, torch.from_numpy(weights)).numpy()
        return sums.reshape(self.shape)

    def back(self, gradient: Float[np.ndarray, "column row"]) -> Float[np.ndarray, "pattern"]:
        """The transposed product, from a gradient by the sums to one by the weights."""
        flat = torch.from_numpy(gradient.reshape(-1))
        spread: np.ndarray = torch.mv(self.backward, flat).numpy()
        return spread


def _csr(
    row: np.ndarray, column: np.ndarray, value: np.ndarray, size: tuple[int, int]
) -> torch.Tensor:
    order = np.lexsort((column, row))
    start = np.searchsorted(row[order], np.arange(size[0] + 1)).astype(np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its sparse matrices a beta
        return torch.sparse_csr_tensor(
            torch.from_numpy(start),
            torch.from_numpy(column[order].astype(np.int32)),
            torch.from_numpy(value[order]),
            size=size,
            dtype=torch.float64,
            check_invariants=True,
        )
