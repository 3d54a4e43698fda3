"""Chains as counts: how often each symbol follows each pattern of matches with the query.

The model's answer to a chain is a ratio of sums over positions, and positions with the same
pattern have the same similarity. So a chain is a short list of (pattern, how often each symbol
followed it), and an epoch over all chains is two products with one sparse matrix. Nothing is
approximated: the sums are only taken in another order.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError
from hopscope.machine import memory_bytes
from hopscope.ngram import matches
from hopscope.ngram.matches import Matches
from hopscope.ngram.process import Chains

BYTES_PER_POSITION = 64
"""What a position takes while it is counted; measured."""


@dataclass(frozen=True)
class Counts:
    """The counts of chains, one after the other."""

    start: Int[np.ndarray, "chain_and_end"]
    """Where the entries of each chain begin."""
    pattern: Int[np.ndarray, "entry"]
    symbols: Int[np.ndarray, "entry symbol"]
    """How often each symbol followed the entry's pattern in its chain."""
    targets: Int[np.ndarray, "chain"]

    def __len__(self) -> int:
        return len(self.targets)

    def chain(self) -> Int[np.ndarray, "entry"]:
        """The number of the chain that each entry belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def attended(self, scaled: Float[np.ndarray, "pattern"]) -> Float[np.ndarray, "chain symbol"]:
        """The distribution that attention proportional to e^scaled answers for each chain."""
        own = scaled[self.pattern]
        largest = np.maximum.reduceat(own, self.start[:-1])
        weighed = self.symbols * np.exp(own - largest[self.chain()])[:, None]
        sums = np.add.reduceat(weighed, self.start[:-1], axis=0)
        answers: np.ndarray = sums / sums.sum(axis=1, keepdims=True)
        return answers


def counted(chains: Chains, window: int, inside: bool = False) -> tuple[Counts, Matches]:
    """The counts of chains, and the patterns they are over."""
    words = matches.found_patterns(chains.tokens, window, inside)
    known = matches.distinct(words)
    counts = tallied(chains, matches.numbered(words, known), window)
    return counts, matches.tables(known, window, inside)


def tallied(chains: Chains, pattern: Int[np.ndarray, "chain key"], window: int) -> Counts:
    """How often each symbol follows each pattern, from the pattern of every position."""
    many, alphabet = int(pattern.max()) + 1, chains.process.alphabet
    place = np.arange(len(chains))[:, None] * many + pattern
    entries, number = np.unique(place, return_inverse=True)
    following = chains.tokens[:, window:-1].astype(np.int64)
    tally = np.bincount(
        number.ravel() * alphabet + following.ravel(), minlength=len(entries) * alphabet
    )
    return Counts(
        start=np.searchsorted(entries, np.arange(len(chains) + 1) * many),
        pattern=entries % many,
        symbols=tally.reshape(-1, alphabet),
        targets=chains.targets.astype(np.int64),
    )


def check_memory(experiment: NgramExperiment) -> None:
    """Refuse what this machine cannot hold, before it is drawn."""
    process, descent = experiment.process, experiment.descent
    chains = descent.chains + descent.validation_chains
    tables = 8 * 3 * chains * process.alphabet ** (len(process.parents) + 1)
    positions = BYTES_PER_POSITION * chains * process.length
    needed = tables + positions * len(experiment.seeds)
    memory = memory_bytes()
    if needed > memory:
        raise ConfigError(
            f"{chains:,} chains of {process.length:,} symbols{_times(len(experiment.seeds))} "
            f"need about {needed / 2**30:,.0f} GiB ({tables / 2**30:,.0f} of them for transition "
            f"tables); this machine has {memory / 2**30:,.0f}: take fewer chains, seeds or parents"
        )


def _times(seeds: int) -> str:
    return f" for each of {seeds} seeds" if seeds > 1 else ""
