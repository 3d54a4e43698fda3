"""The similarity of every pattern for a model in training, and its steps of gradient descent.

The restricted model depends on matches only, and its gradient is written by hand: with autograd, an
epoch takes 2.4 times as long.

    K_h = Σ_ij σ(w^h)_i σ(w^h)_j [key's lag i = query's lag j]      = ⟨v^h_key, v^h_query⟩
    s   = Σ_S c_S² Π_{h∈S} K_h / Σ_S c_S²

With unit copies, K_h is divided by the lengths of both copies. With a full first layer, a copy
depends on the symbols themselves. There are still few different pairs of windows: the torch module
computes the similarity of each, and autograd the gradient.
"""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int, Int8
from torch.nn.functional import one_hot

from hopscope.configs import InductionModel, NgramExperiment
from hopscope.ngram.counts import Matches, PerPattern, Rows, pattern_counts, tallied, windows
from hopscope.ngram.model import MATRICES, InductionTransformer
from hopscope.ngram.parameters import Parameters, initial, sets, softmax
from hopscope.ngram.process import ChainTokens

NEGLIGIBLE = 1e-150
"""Coefficients below this are set to zero for good. The coefficient of a losing set decreases
geometrically, and arithmetic on squares below 1e-308 takes ten times as long. A set would need as
many epochs to recover as its coefficient took to decrease."""
SMALL = 8_192
"""NumPy (OpenBLAS) uses one thread for operands of at most this many elements."""


class MatchSimilarity:
    """The restricted model, over patterns of matches.

    Values that do not change within a stage are computed once.
    """

    def __init__(self, model: InductionModel, matches: Matches) -> None:
        self.model, self.matches = model, matches
        self.inside = (matches.key, matches.query)
        self.restore(initial(model).named())

    def begin(self, letters: str) -> None:
        """Start or resume a stage that trains the parameters with these letters."""
        self.letters = letters
        # A set with coefficient 0 is not computed, since the coefficient stays 0. If all are 0, the
        # shares are NaN, and the similarity must be NaN too.
        alive = np.flatnonzero(self.parameters.c)
        self.among = alive if len(alive) else np.arange(len(self.parameters.c))
        chosen = [sets(self.model)[number] for number in self.among]
        used = sorted({head for heads in chosen for head in heads})
        size, always = max(map(len, chosen)), len(used)
        # Smaller sets are padded with a head whose inner product is always 1.
        filled = [[*map(used.index, heads), *[always] * (size - len(heads))] for heads in chosen]
        self.heads, self.members = np.array(used, np.int64), np.array(filled, np.int64)
        self.holds = (np.arange(always)[:, None, None] == self.members.T).astype(float)
        self._refresh("CW")

    def scaled(self) -> PerPattern:
        """The similarity of every pattern times a."""
        scaled: np.ndarray = self.parameters.a * self.similar
        return scaled

    def descend(self, slope: PerPattern, lr: float) -> None:
        """Take a step of gradient descent. `slope` is the derivative of the loss with respect to
        the last return value of `scaled`.
        """
        c, w, a = self.parameters.c, self.parameters.w, self.parameters.a
        by_similar = a * slope
        if "a" in self.letters:
            a[...] -= lr * product(slope, self.similar)
        if "C" in self.letters:
            gain = product(self.features, by_similar)
            factor = 2 * c[self.among] / (c**2).sum()
            c[self.among] -= lr * factor * (gain - self.shares @ gain)
            c[np.abs(c) < NEGLIGIBLE] = 0
        if "W" in self.letters:
            w[self.heads] -= lr * self._slope_w(by_similar)
        if "C" not in self.letters or c[self.among].all():
            self._refresh(self.letters)
        else:  # leave the set out from now on, as a resumed training does
            self.begin(self.letters)

    def _refresh(self, letters: str) -> None:
        """Recompute the values that depend on the parameters with these letters."""
        if "W" in letters:
            self.share = softmax(self.parameters.w[self.heads])
            heads, lags = self.share.shape
            pairs = (self.share[:, :, None] * self.share[:, None]).reshape(heads, lags**2)
            self.inner = product(pairs, self.matches.cross.T)  # [head, pattern]
            if self.model.unit_copies:
                self.squares = [product(pairs, own.T) for own in self.inside]  # squared lengths
                self.lengths = np.sqrt(self.squares[0] * self.squares[1])
                self.inner /= self.lengths
            always = np.ones((1, len(self.matches)))
            self.factors = np.concatenate([self.inner, always])[self.members]
            self.features = np.multiply.reduce(self.factors, axis=1)  # [set, pattern]
        if "C" in letters:
            self.shares = self.parameters.shares[self.among]
        if "W" in letters or "C" in letters:
            self.similar = product(self.shares, self.features)

    def _slope_w(self, by_similar: PerPattern) -> Float[np.ndarray, "head lag"]:
        """The derivative with respect to w of the heads in use, from that with respect to the
        similarities.
        """
        upper, by_inner = self.shares[:, None] * by_similar, np.zeros_like(self.inner)
        slots = range(self.members.shape[1])
        for slot in slots:
            beside = upper
            for other in slots:
                if other != slot:
                    beside = beside * self.factors[:, other]
            by_inner += product(self.holds[:, slot], beside)
        heads, lags = self.share.shape
        table = self._by_pairs(by_inner).reshape(heads, lags, lags)
        by_share = ((table + table.swapaxes(1, 2)) @ self.share[:, :, None])[:, :, 0]
        mean = (self.share * by_share).sum(axis=1, keepdims=True)
        slope: np.ndarray = self.share * (by_share - mean)
        return slope

    def _by_pairs(
        self, by_inner: Float[np.ndarray, "head pattern"]
    ) -> Float[np.ndarray, "head lags"]:
        """The derivative by the products of two shares."""
        if not self.model.unit_copies:
            return product(by_inner, self.matches.cross)
        half = -0.5 * by_inner * self.inner
        slope = product(by_inner / self.lengths, self.matches.cross)
        for square, own in zip(self.squares, self.inside, strict=True):
            slope += product(half / square, own)
        return slope

    def state(self) -> dict[str, np.ndarray]:
        """A copy of the parameters by name: c, w and a."""
        return {name: value.copy() for name, value in self.parameters.named().items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the parameters that `state` returned."""
        self.parameters = Parameters.of(state)
        self.begin("CWa")


class WindowSimilarity:
    """The model with a full first layer, over pairs of a key's window and a query's window."""

    def __init__(
        self,
        module: InductionTransformer,
        keys: Int8[np.ndarray, "pattern seen"],
        queries: Int8[np.ndarray, "pattern lag"],
    ) -> None:
        """`keys` and `queries` are the windows of each pair; a key's window starts with its own
        symbol (lag 0).
        """
        self.module = module
        (self.keys, self.key), (self.queries, self.query) = map(_distinct, (keys, queries))

    def begin(self, letters: str) -> None:
        names = {"C": ("c",), "W": ("w", *MATRICES), "a": ("a",)}
        self.trained = [getattr(self.module, name) for key in letters for name in names[key]]

    def scaled(self) -> PerPattern:
        module = self.module
        keys, queries = (one_hot(n, module.alphabet).double() for n in (self.keys, self.queries))
        nothing = torch.zeros(len(queries), module.alphabet, dtype=torch.float64)
        key, query = module.copies(keys[:, 1:], keys[:, 0]), module.copies(queries, nothing)
        self.graph = module.a * module.similarity(key[self.key], query[self.query])
        return self.graph.detach().numpy()

    def descend(self, slope: PerPattern, lr: float) -> None:
        slopes = torch.autograd.grad(self.graph, self.trained, torch.from_numpy(slope))
        with torch.no_grad():
            for value, change in zip(self.trained, slopes, strict=True):
                value.sub_(change, alpha=lr)

    def state(self) -> dict[str, np.ndarray]:
        return {name: value.numpy().copy() for name, value in self.module.state_dict().items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})


def _distinct(
    window: Int8[np.ndarray, "pattern seen"],
) -> tuple[Int[torch.Tensor, "window seen"], Int[torch.Tensor, "pattern"]]:
    """The different windows, and the index of every pattern's window among them."""
    each, number = np.unique(window, axis=0, return_inverse=True)
    return torch.from_numpy(each.astype(np.int64)), torch.from_numpy(number.reshape(-1))


Similarity = MatchSimilarity | WindowSimilarity
"""A model in training, which computes the similarities of all patterns."""


def counted_for(
    experiment: NgramExperiment, tokens: ChainTokens, seed: int = 0
) -> tuple[Rows, Similarity]:
    """Chains as counts over the patterns that the model distinguishes, and the untrained model."""
    alphabet, model = experiment.process.alphabet, experiment.model
    if model.first == "copies":
        rows, matches = pattern_counts(tokens, alphabet, model.window, model.unit_copies)
        return rows, MatchSimilarity(model, matches)
    keys, queries = windows(tokens, model.window)
    keys = np.concatenate([tokens[:, model.window : -1, None], keys], axis=2)
    digits = [*np.moveaxis(keys, 2, 0), *queries.T[:, :, None]]
    rows, first = tallied(tokens, alphabet, model.window, digits, alphabet)
    chain, position = np.divmod(first, keys.shape[1])
    module = InductionTransformer(model, alphabet, seed)
    return rows, WindowSimilarity(module, keys[chain, position], queries[chain])


def product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The matrix product of two arrays, computed by NumPy if both are small, else by torch.

    NumPy uses its own thread pool for large products. While these threads wait, they occupy the
    cores that torch's sparse products need: with 32,000 patterns, an epoch took ten times as long.
    """
    if one.size <= SMALL and other.size <= SMALL:
        return np.asarray(one @ other)
    large: np.ndarray = torch.matmul(torch.from_numpy(one), torch.from_numpy(other)).numpy()
    return large
