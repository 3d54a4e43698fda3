"""The similarity of two positions by their pattern of matches, and its gradient by hand.

    K_h = Σ_ij σ(w^h)_i σ(w^h)_j [key's lag i = query's lag j]      = ⟨v^h_key, v^h_query⟩
    s   = Σ_S c_S² Π_{h∈S} K_h / Σ_S c_S²

With unit copies K_h is divided by the lengths of both copies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hopscope.ngram.dense import product
from hopscope.ngram.matches import Matches
from hopscope.ngram.parameters import softmax


@dataclass(frozen=True)
class Copies:
    """What the similarities of all patterns are made of, as far as it follows from the heads'
    weights.
    """

    share: Float[np.ndarray, "head lag"]
    inner: Float[np.ndarray, "head pattern"]
    """The inner product of what each head copies for the two windows of each pattern, K."""
    length: Float[np.ndarray, "head pattern"] | None
    """With unit copies, what their inner products were divided by."""
    factors: Float[np.ndarray, "set slot pattern"]
    features: Float[np.ndarray, "set pattern"]
    """The product of the factors of each set of heads, for each pattern."""


class Similarity:
    """Similarities of all patterns by some sets of heads; heads in none of them are left out."""

    def __init__(self, chosen: Sequence[tuple[int, ...]], unit: bool, matches: Matches) -> None:
        self.matches, self.unit = matches, unit
        self.heads = sorted({head for heads in chosen for head in heads})
        size = max((len(heads) for heads in chosen), default=0)
        # Short sets are filled up with a head that always agrees.
        always = len(self.heads)
        place = {head: number for number, head in enumerate(self.heads)}
        self.members = np.array(
            [[*(place[h] for h in heads), *[always] * (size - len(heads))] for heads in chosen],
            dtype=np.int64,
        )
        self.holds = (np.arange(always)[:, None, None] == self.members.T).astype(float)
        self.others = [[slot for slot in range(size) if slot != left] for left in range(size)]

    def copies(self, w: Float[np.ndarray, "head lag"]) -> Copies:
        """Inner products of the heads' copies, and the sets' products of them, by pattern."""
        share = softmax(w[self.heads])
        pairs = _pairs(share)
        inner = product(pairs, self.matches.cross.T)
        length = None
        if self.unit:
            key, query = product(pairs, self.matches.key.T), product(pairs, self.matches.query.T)
            length = np.sqrt(key * query)
            inner = inner / length
        always = np.ones((1, len(self.matches)))
        factors = np.concatenate([inner, always])[self.members]
        return Copies(share, inner, length, factors, np.multiply.reduce(factors, axis=1))

    def slope(
        self,
        copies: Copies,
        shares: Float[np.ndarray, "set"],
        ds: Float[np.ndarray, "pattern"],
    ) -> Float[np.ndarray, "head lag"]:
        """The derivative by the heads' w, from that by the similarities."""
        upper = shares[:, None] * ds
        dk = np.zeros_like(copies.inner)
        for slot, others in enumerate(self.others):
            beside = upper
            for other in others:
                beside = beside * copies.factors[:, other]
            dk += product(self.holds[:, slot], beside)
        table = self._pair_slope(copies, dk).reshape(*copies.share.shape, copies.share.shape[1])
        dshare = ((table + table.swapaxes(-1, -2)) @ copies.share[..., None])[..., 0]
        mean = (copies.share * dshare).sum(axis=-1, keepdims=True)
        slope: np.ndarray = copies.share * (dshare - mean)
        return slope

    def _pair_slope(
        self, copies: Copies, dk: Float[np.ndarray, "head pattern"]
    ) -> Float[np.ndarray, "head lags"]:
        """The derivative by the products of shares."""
        if copies.length is None:
            return product(dk, self.matches.cross)
        pairs = _pairs(copies.share)
        half = -0.5 * dk * copies.inner
        slope = product(dk / copies.length, self.matches.cross)
        for own in (self.matches.key, self.matches.query):
            slope += product(half / product(pairs, own.T), own)
        return slope


def _pairs(share: Float[np.ndarray, "head lag"]) -> Float[np.ndarray, "head lags"]:
    """Products of the shares of every two lags."""
    table: np.ndarray = share[:, :, None] * share[:, None, :]
    return table.reshape(len(share), share.shape[1] ** 2)
