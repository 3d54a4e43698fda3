"""Gradient descent on chains as counts: an epoch is two products with one sparse matrix."""

import warnings
from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Float, Int

from hopscope.configs import Descent, NgramExperiment, Split
from hopscope.configs.recipe import SPLITS
from hopscope.ngram.counts import PerPattern, Rows, Sums, merged
from hopscope.ngram.process import Chains, sample_chains
from hopscope.ngram.similarity import counted_for

FAR = 600.0
"""If exponents differ by more than this, each chain needs its own shift: exp(-745) is zero."""

Answerer = Callable[[Mapping[str, np.ndarray]], Float[np.ndarray, "chain symbol"]]
"""A function from a model's state to its answers to some chains."""


class NgramTrainer:
    """Trains a model on the chains of one seed."""

    def __init__(self, experiment: NgramExperiment, seed: int) -> None:
        self.experiment, self.seed = experiment, seed
        descent, chains = (
            experiment.descent,
            [chains_of(experiment, seed, split) for split in SPLITS],
        )
        tokens = np.concatenate([each.tokens for each in chains])
        rows, self.model = counted_for(experiment, tokens, seed)
        rows = rows.for_loss(tokens[:, -1], descent.loss == "softmax")
        parts = np.split(np.arange(len(rows)), [descent.chains])
        self.rows, validation = (rows.take(part) for part in parts)
        self.on = {"train": ChainLoss(descent, self.rows),
                   "validation": ChainLoss(descent, validation)}  # fmt: skip

    def advance(self, epoch: int) -> None:
        """Train for one epoch, with this number."""
        descent = self.experiment.descent
        if descent.batch is None:
            self.model.descend(self.on["train"].slope(self.model.scaled()), descent.lr)
            return
        for chosen in batches(self.seed, epoch, descent.chains, descent.batch):
            slope = loss_slope(descent, self.rows.take(chosen), self.model.scaled())
            self.model.descend(slope, descent.lr)

    def losses(self) -> dict[Split, float]:
        """The mean loss on the training chains and on the validation chains."""
        scaled = self.model.scaled()
        return {split: self.on[split].value(scaled) for split in SPLITS}


class ChainLoss:
    """The mean loss on chains as a function of every pattern's scaled similarity."""

    def __init__(self, descent: Descent, rows: Rows) -> None:
        self.descent = descent
        self.rows, still = merged(rows)
        sums, _ = still.sums(np.zeros(still.patterns))
        self.constant = float(row_losses(descent, sums) @ still.weight)
        column, entry = np.nonzero(self.rows.counts)
        place, pattern = column * len(self.rows) + self.rows.row[entry], self.rows.pattern[entry]
        values = self.rows.counts[column, entry]
        size = (len(rows.counts) * len(self.rows), rows.patterns)
        self.forward = _sparse(np.stack([place, pattern]), values, size)
        self.backward = _sparse(np.stack([pattern, place]), values, size[::-1])

    def value(self, scaled: PerPattern) -> float:
        """The mean loss."""
        powers = _powers(scaled)
        sums = self.rows.sums(scaled)[0] if powers is None else self._sums(powers)
        return self.constant + float(row_losses(self.descent, sums) @ self.rows.weight)

    def slope(self, scaled: PerPattern) -> PerPattern:
        """The derivative of the mean loss with respect to the scaled similarities."""
        powers = _powers(scaled)
        if powers is None:
            return loss_slope(self.descent, self.rows, scaled)
        by_sums = row_slopes(self.descent, self._sums(powers), self.rows.weight)
        back = torch.mv(self.backward, torch.from_numpy(by_sums.reshape(-1)))
        slope: np.ndarray = powers * back.numpy()
        return slope

    def _sums(self, powers: PerPattern) -> Sums:
        sums: np.ndarray = torch.mv(self.forward, torch.from_numpy(powers)).numpy()
        return sums.reshape(len(self.rows.counts), len(self.rows))


def row_losses(descent: Descent, sums: Sums) -> Float[np.ndarray, "row"]:
    """The loss of each row, from the weighted sums of the columns of `Rows.for_loss`."""
    if descent.loss == "softmax":
        answers = sums / sums.sum(axis=0)
        softmax: np.ndarray = np.log(np.exp(answers).sum(axis=0)) - answers[0]
        return softmax
    log: np.ndarray = -np.log(sums[0] / sums[1] + descent.epsilon)
    return log


def row_slopes(descent: Descent, sums: Sums, weight: Float[np.ndarray, "row"]) -> Sums:
    """The derivative of the weighted losses with respect to the sums."""
    if descent.loss == "softmax":
        whole = sums.sum(axis=0)
        answers = sums / whole
        powers = np.exp(answers)
        slope = powers / powers.sum(axis=0)
        slope[0] -= 1
        softmax: np.ndarray = (slope - (slope * answers).sum(axis=0)) * (weight / whole)
        return softmax
    hits, whole = sums
    log = np.empty_like(sums)
    np.divide(weight, hits + descent.epsilon * whole, out=log[0])
    np.multiply(log[0], hits / whole, out=log[1])
    np.negative(log[0], out=log[0])
    return log


def loss_slope(descent: Descent, rows: Rows, scaled: PerPattern) -> PerPattern:
    """The derivative of the mean loss of any rows with respect to the scaled similarities."""
    sums, attention = rows.sums(scaled)
    return rows.back(row_slopes(descent, sums, rows.weight), attention)


def _powers(scaled: PerPattern) -> PerPattern | None:
    """Unnormalised attention, with a maximum of 1; None if a common shift could underflow."""
    shifted = scaled - scaled.max()
    return np.exp(shifted) if shifted.min() > -FAR else None


def _sparse(where: np.ndarray, values: np.ndarray, size: tuple[int, ...]) -> torch.Tensor:
    """A sparse matrix of values at (row, column); MKL is fastest with 32-bit indices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that its sparse matrices are in beta
        indices, numbers = torch.from_numpy(where), torch.from_numpy(values)
        matrix = torch.sparse_coo_tensor(indices, numbers, size).to_sparse_csr()
        start, column = matrix.crow_indices().int(), matrix.col_indices().int()
        return torch.sparse_csr_tensor(start, column, matrix.values(), size)


def answerer(experiment: NgramExperiment, chains: Chains) -> Answerer:
    """A function from the model's state to its answers to these chains."""
    rows, model = counted_for(experiment, chains.tokens)

    def answers(state: Mapping[str, np.ndarray]) -> Float[np.ndarray, "chain symbol"]:
        model.restore(state)
        return rows.answers(model.scaled())

    return answers


def chains_of(experiment: NgramExperiment, seed: int, split: Split) -> Chains:
    """The chains for the training or the validation of a seed."""
    descent = experiment.descent
    count = descent.chains if split == "train" else descent.validation_chains
    return sample_chains(experiment.process, count, seed, split)


def batches(seed: int, epoch: int, chains: int, batch: int) -> list[Int[np.ndarray, "some"]]:
    """A random order of all chains, split into batches; the last may be smaller."""
    generator = np.random.Generator(np.random.PCG64DXSM([seed, 3, epoch]))
    order = generator.permutation(chains)
    return [order[first : first + batch] for first in range(0, chains, batch)]
