"""The similarity of two positions by their pattern of matches, and its gradient by hand.

    K_h = Σ_ij σ(w^h)_i σ(w^h)_j [key's lag i = query's lag j]      = ⟨v^h_key, v^h_query⟩
    s   = Σ_S c_S² Π_{h∈S} K_h / Σ_S c_S²

With unit copies K_h is divided by the lengths of both copies.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hopscope.configs import InductionModel
from hopscope.markov.matches import Matches
from hopscope.markov.parameters import sets, softmax


@dataclass(frozen=True)
class Copies:
    """What follows from the heads' weights alone."""

    share: Float[np.ndarray, "head lag"]
    inner: Float[np.ndarray, "head pattern"]
    """Inner products of the copies, K."""
    length: Float[np.ndarray, "head pattern"] | None
    """With unit copies, what their inner products were divided by."""
    factors: Float[np.ndarray, "set slot pattern"]
    features: Float[np.ndarray, "set pattern"]
    """The product of the factors."""


class Similarity:
    """Similarities of all patterns."""

    def __init__(self, model: InductionModel, matches: Matches) -> None:
        self.matches, self.unit = matches, model.unit_copies
        named = sets(model)
        size = max(1, *map(len, named))
        # Short sets are filled up with a head that always agrees.
        filled = [(*heads, *[model.heads] * (size - len(heads))) for heads in named]
        self.members = np.array(filled)
        self.holds = (np.arange(model.heads)[:, None, None] == self.members.T).astype(float)
        self.others = [[slot for slot in range(size) if slot != left] for left in range(size)]

    def copies(self, w: Float[np.ndarray, "head lag"]) -> Copies:
        share = softmax(w)
        pairs = _pairs(share)
        inner: np.ndarray = pairs @ self.matches.cross.T
        length = None
        if self.unit:
            length = np.sqrt((pairs @ self.matches.key.T) * (pairs @ self.matches.query.T))
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
        """The derivative by w, from that by the similarities."""
        upper = shares[:, None] * ds
        dk = np.zeros_like(copies.inner)
        for slot, others in enumerate(self.others):
            beside = upper
            for other in others:
                beside = beside * copies.factors[:, other]
            dk += self.holds[:, slot] @ beside
        table = self._pair_slope(copies, dk).reshape(*copies.share.shape, -1)
        dshare = ((table + table.swapaxes(-1, -2)) @ copies.share[..., None])[..., 0]
        mean = (copies.share * dshare).sum(axis=-1, keepdims=True)
        slope: np.ndarray = copies.share * (dshare - mean)
        return slope

    def _pair_slope(
        self, copies: Copies, dk: Float[np.ndarray, "head pattern"]
    ) -> Float[np.ndarray, "head lags"]:
        """The derivative by the products of shares."""
        if copies.length is None:
            plain: np.ndarray = dk @ self.matches.cross
            return plain
        pairs = _pairs(copies.share)
        half = -0.5 * dk * copies.inner
        slope: np.ndarray = (dk / copies.length) @ self.matches.cross
        for own in (self.matches.key, self.matches.query):
            slope += (half / (pairs @ own.T)) @ own
        return slope


def _pairs(share: Float[np.ndarray, "head lag"]) -> Float[np.ndarray, "head lags"]:
    """Products of the shares of every two lags."""
    table: np.ndarray = share[:, :, None] * share[:, None, :]
    return table.reshape(len(share), -1)
