"""The loss of a model on chains, and its exact gradient, by counts."""

import numpy as np
from jaxtyping import Float, Int

from hopscope.configs import Descent, InductionModel
from hopscope.ngram.dense import product
from hopscope.ngram.matches import Matches
from hopscope.ngram.parameters import Parameters, sets
from hopscope.ngram.rows import Products, Rows
from hopscope.ngram.similarity import Copies, Similarity

Sums = Float[np.ndarray, "column row"]
"""Weighed counts of every chain: of its target, of other symbols, and of everything."""


FAR = 600.0
"""Exponents further apart need a shift for each chain: exp(-745) is zero."""


class LogLoss:
    """Minus the logarithm of the answer's probability of the target, −log(h/n + ε)."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def value(self, products: Sums) -> Float[np.ndarray, "row"]:
        """The loss of each row, from its sums for the target (h) and for everything (n)."""
        hits, whole = products
        losses: np.ndarray = -np.log(hits / whole + self.epsilon)
        return losses

    def slope(self, products: Sums, weight: Float[np.ndarray, "row"]) -> Sums:
        """The derivative of each row's loss by its sums, times the weight of the row."""
        hits, whole = products
        down = np.empty_like(products)
        np.divide(weight, -(hits + self.epsilon * whole), out=down[0])
        np.multiply(down[0], -hits / whole, out=down[1])
        return down


class SoftmaxLoss:
    """Cross-entropy of a softmax over the answer's probabilities; the target is in column 0."""

    def value(self, products: Sums) -> Float[np.ndarray, "row"]:
        """The loss of each row; its last sum is that for everything."""
        answers = products[:-1] / products[-1]
        losses: np.ndarray = np.log(np.exp(answers).sum(axis=0)) - answers[0]
        return losses

    def slope(self, products: Sums, weight: Float[np.ndarray, "row"]) -> Sums:
        """The derivative of each row's loss by its sums, times the weight of the row."""
        answers = products[:-1] / products[-1]
        powers = np.exp(answers)
        slope = powers / powers.sum(axis=0)
        slope[0] -= 1
        slope *= weight / products[-1]
        return np.concatenate([slope, -(slope * answers).sum(axis=0, keepdims=True)])


def loss_of(descent: Descent) -> LogLoss | SoftmaxLoss:
    """The loss that training minimises, as the settings say."""
    return SoftmaxLoss() if descent.loss == "softmax" else LogLoss(descent.epsilon)


class Answering:
    """From scaled similarities to the loss on chains, and its slope back to them."""

    def __init__(self, rows: Rows, sparse: Products | Rows, loss: LogLoss | SoftmaxLoss) -> None:
        self.rows, self.sparse, self.loss = rows, sparse, loss

    def value(self, scaled: Float[np.ndarray, "pattern"]) -> float:
        """The mean loss over all chains, from the scaled similarity of each pattern."""
        sums = self.sparse.times(powers(scaled)) if _near(scaled) else self.rows.attended(scaled)[0]
        return float(product(self.loss.value(sums), self.rows.weight))

    def slope(
        self, scaled: Float[np.ndarray, "pattern"], near: bool | None = None
    ) -> Float[np.ndarray, "pattern"]:
        """The mean loss's derivative by each scaled similarity; `near` if one knows already that
        they are no further apart than FAR.
        """
        if not (_near(scaled) if near is None else near):
            sums, weights = self.rows.attended(scaled)
            return self.rows.spread(self.loss.slope(sums, self.rows.weight), weights)
        weights = powers(scaled)
        down = self.loss.slope(self.sparse.times(weights), self.rows.weight)
        back: np.ndarray = weights * self.sparse.back(down)
        return back


class Objective:
    """The loss as a function of the parameters.

    What a stage leaves as it is, is computed once; `begin` forgets it.
    """

    def __init__(self, model: InductionModel, matches: Matches) -> None:
        self.model, self.matches = model, matches
        self.begin(slice(None))

    def begin(self, among: slice | Int[np.ndarray, "some"]) -> None:
        """The parameters may have changed in any way. From now on only some of the sets count; the
        coefficients of the others are zero, and will stay zero.
        """
        self.among = among
        chosen = [sets(self.model)[number] for number in np.arange(len(sets(self.model)))[among]]
        self.similarity = Similarity(chosen, self.model.unit_copies, self.matches)
        self.copies: Copies | None = None
        self.similar: np.ndarray | None = None
        self.shares: np.ndarray | None = None

    def scaled(self, parameters: Parameters, letters: str = "CWa") -> Float[np.ndarray, "pattern"]:
        """Similarity times a, where only the parameters named have changed since the last time."""
        if self.shares is None or "C" in letters:
            self.shares = parameters.shares[self.among]
        if self.copies is None or "W" in letters:
            self.copies = self.similarity.copies(parameters.w)
        if self.similar is None or "C" in letters or "W" in letters:
            self.similar = product(self.shares, self.copies.features)
        scaled: np.ndarray = parameters.a * self.similar
        return scaled

    def gradient(
        self, parameters: Parameters, answering: Answering, letters: str
    ) -> dict[str, np.ndarray]:
        """The derivative of the mean loss by the parameters that the letters name."""
        # Similarities lie between 0 and 1.
        dz = answering.slope(self.scaled(parameters, letters), near=abs(float(parameters.a)) < FAR)
        copies, similar, shares = self.copies, self.similar, self.shares
        assert copies is not None
        assert similar is not None
        assert shares is not None
        found: dict[str, np.ndarray] = {}
        ds = parameters.a * dz
        if "C" in letters:
            gain = product(copies.features, ds)
            total = (parameters.c**2).sum()
            found["c"] = np.zeros_like(parameters.c)
            found["c"][self.among] = 2 * parameters.c[self.among] / total * (gain - shares @ gain)
        if "W" in letters:
            found["w"] = np.zeros_like(parameters.w)
            found["w"][self.similarity.heads] = self.similarity.slope(copies, shares, ds)
        if "a" in letters:
            found["a"] = product(dz, similar)
        return found


def _near(scaled: Float[np.ndarray, "pattern"]) -> bool:
    """May all chains share one shift of the exponents, without any coming to nothing?"""
    return bool(scaled.max() - scaled.min() < FAR)


def powers(scaled: Float[np.ndarray, "pattern"]) -> Float[np.ndarray, "pattern"]:
    """Attention before it is normalised, the largest being 1."""
    found: np.ndarray = np.exp(scaled - scaled.max())
    return found
