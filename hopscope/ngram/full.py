"""Training with a full first layer: queries, keys, values and outputs beside the lags.

Here a copy depends on the symbols themselves, and not on matches alone. Still there are only so
many windows: the module computes the similarity of each pair of windows that occurs, once, and the
sums over positions are counts as before. The gradient through the module is autograd's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from hopscope.configs import NgramExperiment
from hopscope.ngram.counts import Counts, tallied
from hopscope.ngram.learner import Answerer, batches, drawn
from hopscope.ngram.matches import windows
from hopscope.ngram.model import MATRICES, InductionTransformer
from hopscope.ngram.objective import Answering, loss_of
from hopscope.ngram.process import Chains, Split
from hopscope.ngram.rows import Products, Rows, rows_of

TRAINED = {"C": ("c",), "W": ("w", *MATRICES), "a": ("a",)}


@dataclass(frozen=True)
class Pairs:
    """The pairs of a key's window, with its own symbol, and a query's window that occur."""

    key: Int[np.ndarray, "pair"]
    query: Int[np.ndarray, "pair"]
    keys: Int[np.ndarray, "key seen"]
    """Distinct keys: the symbols at lags 0, 1, …, M."""
    queries: Int[np.ndarray, "query lag"]

    def scaled(self, module: InductionTransformer) -> Float[Tensor, "pair"]:
        """Similarity times a of every pair."""
        symbols = [
            one_hot(torch.from_numpy(numbers), module.alphabet).double()
            for numbers in (self.keys, self.queries)
        ]
        key = module.copies(symbols[0][:, 1:], symbols[0][:, 0])
        nothing = torch.zeros(len(self.queries), module.alphabet, dtype=torch.float64)
        query = module.copies(symbols[1], nothing)
        similar = module.similarity(key[self.key], query[self.query])
        return module.a * similar


def paired(chains: Chains, window: int) -> tuple[Counts, Pairs]:
    """The counts of chains over pairs of windows."""
    before, asked = windows(chains.tokens, window)
    own = chains.tokens[:, window:-1, None]
    keys, key = _distinct(np.concatenate([own, before], axis=2))
    queries, query = _distinct(asked)
    pairs, number = np.unique(key * len(queries) + query[:, None], return_inverse=True)
    counts = tallied(chains, number.reshape(key.shape), window)
    return counts, Pairs(pairs // len(queries), pairs % len(queries), keys, queries)


def _distinct(
    symbols: Int[np.ndarray, "*axes seen"],
) -> tuple[Int[np.ndarray, "window seen"], Int[np.ndarray, "*axes"]]:
    """The different windows, and which one each is."""
    flat = symbols.reshape(-1, symbols.shape[-1])
    found, number = np.unique(flat, axis=0, return_inverse=True)
    return found.astype(np.int64), number.reshape(symbols.shape[:-1])


class FullLearner:
    """Gradient descent on the model with a full first layer."""

    def __init__(self, experiment: NgramExperiment, seed: int) -> None:
        self.experiment, self.seed = experiment, seed
        self.module = InductionTransformer(experiment.model, experiment.process.alphabet, seed)
        self.pairs: dict[Split, Pairs] = {}
        self.answering: dict[Split, Answering] = {}
        splits: tuple[Split, ...] = ("train", "validation")
        for split in splits:
            counts, pairs = paired(drawn(experiment, seed, split), experiment.model.window)
            rows = rows_of(counts, len(pairs.key), experiment.descent.loss == "softmax")
            self.pairs[split] = pairs
            self.answering[split] = Answering(rows, Products(rows), loss_of(experiment.descent))

    def begin(self, letters: str) -> None:
        self.trained = [getattr(self.module, name) for key in letters for name in TRAINED[key]]

    def advance(self, epoch: int) -> None:
        descent, whole = self.experiment.descent, self.answering["train"]
        if descent.batch is None:
            self._step(whole)
            return
        for chosen in batches(self.seed, epoch, descent.chains, descent.batch):
            rows: Rows = whole.rows.take(chosen, 1 / len(chosen))
            self._step(Answering(rows, rows, whole.loss))

    def _step(self, answering: Answering) -> None:
        scaled = self.pairs["train"].scaled(self.module)
        slope = torch.from_numpy(answering.slope(scaled.detach().numpy()))
        slopes = torch.autograd.grad(scaled, self.trained, slope)
        with torch.no_grad():
            for value, change in zip(self.trained, slopes, strict=True):
                value.sub_(change, alpha=self.experiment.descent.lr)

    @torch.no_grad()
    def losses(self) -> dict[Split, float]:
        return {
            split: answering.value(self.pairs[split].scaled(self.module).numpy())
            for split, answering in self.answering.items()
        }

    def state(self) -> dict[str, np.ndarray]:
        return {name: value.numpy().copy() for name, value in self.module.state_dict().items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})


def full_answerer(experiment: NgramExperiment, chains: Chains) -> Answerer:
    """What the model with a full first layer answers, as a function of its state."""
    module = InductionTransformer(experiment.model, experiment.process.alphabet)
    counts, pairs = paired(chains, experiment.model.window)

    @torch.no_grad()
    def answers(state: Mapping[str, np.ndarray]) -> Float[np.ndarray, "chain symbol"]:
        module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
        return counts.attended(pairs.scaled(module).numpy())

    return answers
