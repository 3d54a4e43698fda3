"""What a trained model has become: which set it chose, how near it is to an induction head,
whether that carries over to other chains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hopscope.configs import InductionModel, NgramExperiment, NgramProcess
from hopscope.errors import ConfigError
from hopscope.ngram import predictors
from hopscope.ngram.full import full_answerer
from hopscope.ngram.learner import Answerer, answerer, drawn
from hopscope.ngram.parameters import Parameters, sets
from hopscope.ngram.process import Chains, sample_chains
from hopscope.ngram.run import NgramRun

LENGTHS = (10, 20, 50, 100, 200, 400)
"""Lengths of the chains on which transfer is measured, unless told otherwise."""
ALPHAS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Concentrations of the prior on which transfer is measured, unless told otherwise."""
FIRST_CHAIN_SEED = 1_000_003
"""Chains of a transfer come from seeds no training is likely to use."""


@dataclass(frozen=True)
class Choice:
    """The set with the largest coefficient, and the lags that its heads copy most of."""

    heads: tuple[int, ...]
    lags: tuple[int, ...]
    share: float
    """This set's part in the sum of squared coefficients, from 0 to 1."""
    weights: tuple[float, ...]
    """Attention of each of these heads to its lag."""


def choice(model: InductionModel, parameters: Parameters) -> Choice:
    """The set of heads that the model relies on most, and the lag that each of its heads copies."""
    best = int(parameters.shares.argmax())
    heads, attention = sets(model)[best], parameters.attention
    lags = tuple(int(attention[head].argmax()) + 1 for head in heads)
    weights = tuple(float(attention[head].max()) for head in heads)
    return Choice(heads, lags, float(parameters.shares[best]), weights)


@dataclass(frozen=True)
class Losses:
    """Mean losses of the model and of others, on the same chains."""

    model: float
    gih: float
    bayes: float
    truth: float


@dataclass(frozen=True)
class Comparison:
    """A model beside the generalised induction head, Bayes and the truth."""

    seen: Losses
    """The mean losses on the symbols that followed, in the loss that training minimises."""
    expected: Losses
    """The log loss over all symbols that could have followed."""
    distance: float
    """Mean total variation between model and GIH over the parents, in chains where GIH finds a
    match; not a number if there are none."""
    matched: float
    """The share of the chains in which GIH finds a match."""


def compare(
    experiment: NgramExperiment, answer: Float[np.ndarray, "chain symbol"], chains: Chains
) -> Comparison:
    """Hold a model's answers against the others'."""
    descent = experiment.descent
    head, found = predictors.gih(chains, experiment.model.window, experiment.process.parents)
    answers = (answer, head, predictors.bayes(chains), predictors.truth(chains))
    apart = predictors.distance(answer, head)[found]
    return Comparison(
        seen=Losses(*(predictors.mean_loss(descent, each, chains) for each in answers)),
        expected=Losses(
            *(predictors.expected_loss(each, chains, descent.epsilon) for each in answers)
        ),
        distance=float(apart.mean()) if len(apart) else float("nan"),
        matched=float(found.mean()),
    )


def said(
    experiment: NgramExperiment, state: Mapping[str, np.ndarray], chains: Chains
) -> Float[np.ndarray, "chain symbol"]:
    """What the model answers in this state."""
    return _answerer(experiment, chains)(state)


def _answerer(experiment: NgramExperiment, chains: Chains) -> Answerer:
    kind = full_answerer if experiment.model.first == "full" else answerer
    return kind(experiment, chains)


def transfer(
    run: NgramRun,
    seed: int,
    lengths: Sequence[int] = LENGTHS,
    alphas: Sequence[float] = ALPHAS,
    chains: int = 1_000,
) -> list[tuple[NgramProcess, Comparison]]:
    """The trained model on fresh chains of other lengths, and of other priors."""
    trained, state = run.recipe.process, run.state(seed)
    if chains < 1:
        raise ConfigError(f"chains is {chains}; expected at least 1")
    others = [{"length": length} for length in lengths] + [{"alpha": alpha} for alpha in alphas]
    found = []
    for other in others:
        process = NgramProcess(**{**trained.model_dump(), **other})
        NgramExperiment(process=process, model=run.recipe.model)  # does the window fit?
        fresh = sample_chains(process, chains, FIRST_CHAIN_SEED + seed)
        found.append((process, compare(run.recipe, said(run.recipe, state, fresh), fresh)))
    return found


@dataclass(frozen=True)
class Moment:
    """The model at one epoch of the last stage."""

    epoch: int
    """Epochs since the last stage began."""
    a: float
    loss: float
    distance: float
    """Mean total variation to GIH, over validation chains where GIH finds a match."""


def approach(run: NgramRun, seed: int) -> list[Moment]:
    """How the model came near the induction head in the last stage."""
    experiment = run.recipe
    chains = drawn(experiment, seed, "validation")
    head, found = predictors.gih(chains, experiment.model.window, experiment.process.parents)
    first = experiment.steps - experiment.descent.plan()[-1][1]
    answers, moments = _answerer(experiment, chains), []
    for epoch, state in _states(run, seed, first):
        answer = answers(state)
        loss = predictors.mean_loss(experiment.descent, answer, chains)
        apart = predictors.distance(answer, head)[found]
        mean = float(apart.mean()) if len(apart) else float("nan")
        moments.append(Moment(epoch - first, float(state["a"]), loss, mean))
    return moments


def _states(run: NgramRun, seed: int, first: int) -> list[tuple[int, dict[str, np.ndarray]]]:
    """The model from an epoch on: as recorded, or, since matrices are not, its checkpoints."""
    if run.recipe.model.first == "full":
        return [(epoch, run.state(seed, epoch)) for epoch in run.checkpoints if epoch >= first]
    course = run.course(seed)
    chosen = np.flatnonzero(course.epochs >= first)
    return [(int(course.epochs[n]), course.at(int(n)).named()) for n in chosen]
