"""A model in training: the restricted one by counts, or one with a full first layer by autograd."""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from hopscope.configs import NgramExperiment
from hopscope.ngram.counts import counted
from hopscope.ngram.objective import Answering, Objective, loss_of
from hopscope.ngram.parameters import Parameters, initial
from hopscope.ngram.process import Chains, Split, sample_chains
from hopscope.ngram.rows import Products, Rows, merged, rows_of

NEGLIGIBLE = 1e-150
"""Coefficients below this are set to zero, and stay there. While a set is losing, its coefficient
falls by a factor in every epoch, and arithmetic on squares below 1e-308 takes ten times as long.
From here a set would need as many epochs to come back as it took to fall."""

Answerer = Callable[[Mapping[str, np.ndarray]], Float[np.ndarray, "chain symbol"]]


@runtime_checkable
class Learner(Protocol):
    """What the training loop asks of a model."""

    def begin(self, letters: str) -> None:
        """A stage begins, or goes on: the parameters that these letters name will be trained."""

    def advance(self, epoch: int) -> None:
        """Train for one epoch, the one with this number."""

    def losses(self) -> dict[Split, float]:
        """The mean loss on the chains for training and for validation."""

    def state(self) -> dict[str, np.ndarray]:
        """Everything that is trained, by name; c, w and a among it."""

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Put back everything that is trained, as `state` gave it."""


class CountingLearner:
    """Gradient descent on the restricted model, exact, by counts."""

    def __init__(self, experiment: NgramExperiment, seed: int) -> None:
        self.experiment, self.seed = experiment, seed
        self.parameters = initial(experiment.model)
        self.loss = loss_of(experiment.descent)
        self.rows, self.objective = self._side("train")
        held_out, self.validation_objective = self._side("validation")
        self.validation = Answering(held_out, held_out, self.loss)
        moving, still = merged(self.rows)
        self.answering = Answering(moving, Products(moving), self.loss) if len(moving) else None
        self.still = Answering(still, still, self.loss) if len(still) else None

    def _side(self, split: Split) -> tuple[Rows, Objective]:
        """The chains of a split, and the loss on their patterns."""
        experiment = self.experiment
        chains = drawn(experiment, self.seed, split)
        counts, matches = counted(chains, experiment.model.window, experiment.model.unit_copies)
        rows = rows_of(counts, len(matches), experiment.descent.loss == "softmax")
        return rows, Objective(experiment.model, matches)

    def begin(self, letters: str) -> None:
        self.letters = letters
        # Where c stays as it is, sets that have lost for good need not be computed.
        # With all of them 0, none is left out: what they come to is not a number.
        left = np.flatnonzero(self.parameters.c)
        still = "C" not in letters and len(left) > 0
        self.objective.begin(left if still else slice(None))

    def advance(self, epoch: int) -> None:
        descent = self.experiment.descent
        if descent.batch is not None:
            for chosen in batches(self.seed, epoch, descent.chains, descent.batch):
                rows = self.rows.take(chosen, 1 / len(chosen))
                self._step(Answering(rows, rows, self.loss))
        elif self.answering is not None:
            self._step(self.answering)

    def _step(self, answering: Answering) -> None:
        slopes = self.objective.gradient(self.parameters, answering, self.letters)
        for name, slope in slopes.items():
            value: np.ndarray = getattr(self.parameters, name)
            np.subtract(value, self.experiment.descent.lr * slope, out=value)
        if "c" in slopes:
            self.parameters.c[np.abs(self.parameters.c) < NEGLIGIBLE] = 0

    def losses(self) -> dict[Split, float]:
        return {
            "train": self._training_loss(),
            "validation": self.validation.value(self.validation_objective.scaled(self.parameters)),
        }

    def _training_loss(self) -> float:
        scaled = self.objective.scaled(self.parameters, self.letters)
        parts = [part for part in (self.answering, self.still) if part is not None]
        return sum(part.value(scaled) for part in parts)

    def state(self) -> dict[str, np.ndarray]:
        return {name: value.copy() for name, value in self.parameters.named().items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.parameters = Parameters.of(state)


def answerer(experiment: NgramExperiment, chains: Chains) -> Answerer:
    """What the restricted model answers to these chains, as a function of its state."""
    model = experiment.model
    counts, matches = counted(chains, model.window, model.unit_copies)

    def answers(state: Mapping[str, np.ndarray]) -> Float[np.ndarray, "chain symbol"]:
        objective = Objective(model, matches)
        return counts.attended(objective.scaled(Parameters.of(state)))

    return answers


def drawn(experiment: NgramExperiment, seed: int, split: Split) -> Chains:
    """The chains that a seed is trained or validated on."""
    descent = experiment.descent
    count = descent.chains if split == "train" else descent.validation_chains
    return sample_chains(experiment.process, count, seed, split)


def batches(seed: int, epoch: int, chains: int, batch: int) -> list[Int[np.ndarray, "some"]]:
    """An order of all chains, in pieces of the batch's size; the last may be smaller."""
    generator = np.random.Generator(np.random.PCG64DXSM([seed, 3, epoch]))
    order = generator.permutation(chains)
    return [order[first : first + batch] for first in range(0, chains, batch)]
