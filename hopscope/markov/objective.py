"""The loss of a model on chains, and its exact gradient, by counts."""

import numpy as np
from jaxtyping import Float

from hopscope.configs import Descent, InductionModel
from hopscope.markov.matches import Matches
from hopscope.markov.parameters import Parameters
from hopscope.markov.rows import Products, Rows
from hopscope.markov.similarity import Copies, Similarity

Sums = Products | Rows


class LogLoss:
    """Minus the logarithm of the answer's probability of the target."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def value(self, answers: Float[np.ndarray, "column row"]) -> Float[np.ndarray, "row"]:
        losses: np.ndarray = -np.log(answers[0] + self.epsilon)
        return losses

    def slope(self, answers: Float[np.ndarray, "column row"]) -> Float[np.ndarray, "column row"]:
        slope: np.ndarray = -1 / (answers + self.epsilon)
        return slope


class SoftmaxLoss:
    """Cross-entropy of a softmax over the answer's probabilities; the target is in column 0."""

    def value(self, answers: Float[np.ndarray, "column row"]) -> Float[np.ndarray, "row"]:
        losses: np.ndarray = np.log(np.exp(answers).sum(axis=0)) - answers[0]
        return losses

    def slope(self, answers: Float[np.ndarray, "column row"]) -> Float[np.ndarray, "column row"]:
        powers = np.exp(answers)
        slope: np.ndarray = powers / powers.sum(axis=0)
        slope[0] -= 1
        return slope


def loss_of(descent: Descent) -> LogLoss | SoftmaxLoss:
    return SoftmaxLoss() if descent.loss == "softmax" else LogLoss(descent.epsilon)


class Answering:
    """From scaled similarities to the loss on chains, and its slope back to them."""

    def __init__(self, rows: Rows, sums: Sums, loss: LogLoss | SoftmaxLoss) -> None:
        self.rows, self.sums, self.loss = rows, sums, loss

    def value(self, scaled: Float[np.ndarray, "pattern"]) -> float:
        """The mean loss."""
        products = self.sums.times(powers(scaled))
        return float(self.loss.value(products[:-1] / products[-1]) @ self.rows.weight)

    def slope(self, scaled: Float[np.ndarray, "pattern"]) -> Float[np.ndarray, "pattern"]:
        """The mean loss's derivative by each scaled similarity."""
        weights = powers(scaled)
        products = self.sums.times(weights)
        answers = products[:-1] / products[-1]
        slope = self.loss.slope(answers) * (self.rows.weight / products[-1])
        down = np.concatenate([slope, -(slope * answers).sum(axis=0, keepdims=True)])
        back: np.ndarray = weights * self.sums.back(down)
        return back


class Objective:
    """The loss as a function of the parameters.

    What a stage leaves as it is, is computed once; `begin` forgets it.
    """

    def __init__(self, model: InductionModel, matches: Matches) -> None:
        self.similarity = Similarity(model, matches)
        self.begin()

    def begin(self) -> None:
        """The parameters may have changed in any way."""
        self.copies: Copies | None = None
        self.similar: Float[np.ndarray, pattern] | None = None

    def scaled(self, parameters: Parameters, letters: str = "CWa") -> Float[np.ndarray, "pattern"]:
        """Similarity times a, where only the parameters named have changed since the last time."""
        if self.copies is None or "W" in letters:
            self.copies = self.similarity.copies(parameters.w)
        if self.similar is None or "C" in letters or "W" in letters:
            self.similar = parameters.shares @ self.copies.features
        scaled: np.ndarray = parameters.a * self.similar
        return scaled

    def gradient(
        self, parameters: Parameters, answering: Answering, letters: str
    ) -> dict[str, np.ndarray]:
        """The derivative of the mean loss by the parameters that the letters name."""
        dz = answering.slope(self.scaled(parameters, letters))
        copies, similar, shares = self.copies, self.similar, parameters.shares
        assert copies is not None
        assert similar is not None
        found: dict[str, np.ndarray] = {}
        ds = parameters.a * dz
        if "C" in letters:
            gain = copies.features @ ds
            total = (parameters.c**2).sum()
            found["c"] = 2 * parameters.c / total * (gain - shares @ gain)
        if "W" in letters:
            found["w"] = self.similarity.slope(copies, shares, ds)
        if "a" in letters:
            found["a"] = np.asarray(dz @ similar)
        return found


def powers(scaled: Float[np.ndarray, "pattern"]) -> Float[np.ndarray, "pattern"]:
    """Attention before it is normalised, the largest being 1."""
    found: np.ndarray = np.exp(scaled - scaled.max())
    return found
