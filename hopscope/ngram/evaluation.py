"""Evaluation of a trained model: its chosen set, its distance to an induction head, its transfer.

The model is compared with other predictors of the next symbol's distribution: the generalised
induction head (GIH), the Bayes-optimal predictor, and the truth.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from hopscope.configs import Descent, InductionModel, NgramExperiment, NgramProcess
from hopscope.errors import ConfigError
from hopscope.ngram.counts import pattern_counts
from hopscope.ngram.parameters import Parameters, sets
from hopscope.ngram.process import Chains, configuration, sample_chains
from hopscope.ngram.run import NgramRun
from hopscope.ngram.trainer import answerer, chains_of

LENGTHS = (10, 20, 50, 100, 200, 400)
"""Default lengths of the chains on which transfer is measured."""
ALPHAS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Default concentrations of the prior on which transfer is measured."""
FIRST_CHAIN_SEED = 1_000_003
"""The first seed of chains for transfer, which a training is unlikely to use."""
NO_MATCH = -1_000.0
"""An exponent for which e^x is negligible compared with e^0."""

Predictions = Float[np.ndarray, "chain symbol"]


def gih(
    chains: Chains, window: int, lags: tuple[int, ...]
) -> tuple[Predictions, Bool[np.ndarray, "chain"]]:
    """The answers of the generalised induction head (§3), and True for chains with a match.

    It averages the symbols at all positions whose symbols at these lags equal the query's; without
    such a match, at all positions with a complete window.
    """
    rows, matches = pattern_counts(chains.tokens, chains.process.alphabet, window)
    same = matches.at(lags)
    matched: np.ndarray = np.logical_or.reduceat(same[rows.pattern], rows.start[:-1])
    # Exponents are shifted in each chain, so without a match all positions get equal attention.
    return rows.answers(np.where(same, 0.0, NO_MATCH)), matched


def bayes(chains: Chains) -> Predictions:
    """The posterior mean of the next symbol's distribution, given the prior and the parents: the
    best possible answer.

    It is exact for chains with a uniform start. For a stationary start, it ignores the little
    information about the table that the first symbols have.
    """
    process, tokens = chains.process, chains.tokens
    end = tokens.shape[1] - 1
    query = configuration(process, tokens, end)
    tally = np.full((len(chains), process.alphabet), process.alpha)
    for place in range(process.memory, end):
        same = configuration(process, tokens, place) == query
        tally[same, tokens[same, place]] += 1
    answers: np.ndarray = tally / tally.sum(axis=1, keepdims=True)
    return answers


def mean_loss(descent: Descent, answers: Predictions, chains: Chains) -> float:
    """The mean loss of these answers, in the loss of the training."""
    chosen = answers[np.arange(len(chains)), chains.targets]
    if descent.loss == "softmax":
        return float((np.log(np.exp(answers).sum(axis=1)) - chosen).mean())
    return float(-np.log(chosen + descent.epsilon).mean())


def expected_loss(answers: Predictions, chains: Chains, epsilon: float) -> float:
    """The expected log loss under the true distribution of the next symbol."""
    return float(-(chains.truth() * np.log(answers + epsilon)).sum(axis=1).mean())


def distance(one: Predictions, other: Predictions) -> float:
    """The mean total variation between two answers to each chain; NaN if there are no chains."""
    return float(0.5 * np.abs(one - other).sum(axis=1).mean()) if len(one) else float("nan")


@dataclass(frozen=True)
class Choice:
    """The set of heads with the largest coefficient, and the lag that each head mostly copies."""

    heads: tuple[int, ...]
    lags: tuple[int, ...]
    share: float
    """The set's share of the sum of squared coefficients, from 0 to 1."""
    weights: tuple[float, ...]
    """The attention of each of these heads to its lag."""


def choice(model: InductionModel, parameters: Parameters) -> Choice:
    """The set of heads with the largest coefficient, and the lag that each head mostly copies."""
    best = int(parameters.shares.argmax())
    heads, attention = sets(model)[best], parameters.attention
    lags = tuple(int(attention[head].argmax()) + 1 for head in heads)
    weights = tuple(float(attention[head].max()) for head in heads)
    return Choice(heads, lags, float(parameters.shares[best]), weights)


@dataclass(frozen=True)
class ComparedLosses:
    """Mean losses of the model and of other predictors, on the same chains."""

    model: float
    gih: float
    bayes: float
    truth: float


@dataclass(frozen=True)
class Evaluation:
    """A model compared with the generalised induction head, Bayes and the truth."""

    seen: ComparedLosses
    """The mean losses on the symbols that followed, in the loss of the training."""
    expected: ComparedLosses
    """The expected log losses under the true distribution."""
    distance: float
    """The mean total variation distance between model and GIH (with the parents as its lags), over
    chains in which GIH has a match; NaN if there are none."""
    matched: float
    """The share of chains in which GIH has a match."""


def compare(experiment: NgramExperiment, answer: Predictions, chains: Chains) -> Evaluation:
    """A model's answers to chains compared with those of the other predictors."""
    descent = experiment.descent
    head, matched = gih(chains, experiment.model.window, experiment.process.parents)
    answers = (answer, head, bayes(chains), chains.truth())
    return Evaluation(
        seen=ComparedLosses(*(mean_loss(descent, each, chains) for each in answers)),
        expected=ComparedLosses(
            *(expected_loss(each, chains, descent.epsilon) for each in answers)
        ),
        distance=distance(answer[matched], head[matched]),
        matched=float(matched.mean()),
    )


def model_answers(
    experiment: NgramExperiment, state: Mapping[str, np.ndarray], chains: Chains
) -> Predictions:
    """The answers to chains of the model with this state."""
    return answerer(experiment, chains)(state)


def validated(run: NgramRun, seed: int) -> tuple[Parameters, Evaluation]:
    """The trained parameters of a seed, and its model's evaluation on its validation chains."""
    state, chains = run.state(seed), chains_of(run.recipe, seed, "validation")
    answers = model_answers(run.recipe, state, chains)
    return Parameters.of(state), compare(run.recipe, answers, chains)


def transfer(
    run: NgramRun,
    seed: int,
    lengths: Sequence[int] | None = None,
    alphas: Sequence[float] = ALPHAS,
    chains: int = 1_000,
) -> list[tuple[NgramProcess, Evaluation]]:
    """Evaluations of the trained model on fresh chains with other lengths (default: those of
    LENGTHS above the model's window), and with other concentrations of the prior.
    """
    experiment, state = run.recipe, run.state(seed)
    window = experiment.model.window
    if lengths is None:
        lengths = [length for length in LENGTHS if length > window]
    if lengths and min(lengths) <= window:
        raise ConfigError(
            f"lengths has {min(lengths)}; after a window of {window} symbols at least one must "
            f"follow: make it at least {window + 1}"
        )
    if chains < 1:
        raise ConfigError(f"chains is {chains}; expected at least 1")
    others = [{"length": length} for length in lengths] + [{"alpha": alpha} for alpha in alphas]
    compared = []
    for other in others:
        process = experiment.process.replace(**other)
        fresh = sample_chains(process, chains, FIRST_CHAIN_SEED + seed)
        answers = model_answers(experiment, state, fresh)
        compared.append((process, compare(experiment, answers, fresh)))
    return compared


@dataclass(frozen=True)
class Moment:
    """The model at one epoch of the last stage."""

    epoch: int
    """Epochs since the start of the last stage."""
    a: float
    loss: float
    distance: float
    """The mean total variation distance to GIH, over validation chains in which GIH has a match."""


def approach(run: NgramRun, seed: int) -> list[Moment]:
    """The model's distance to the induction head at each recorded epoch of the last stage (with a
    full first layer, at each checkpoint).
    """
    experiment = run.recipe
    chains = chains_of(experiment, seed, "validation")
    head, matched = gih(chains, experiment.model.window, experiment.process.parents)
    first = experiment.steps - experiment.descent.plan()[-1][1]
    answers, moments = answerer(experiment, chains), []
    for epoch, state in _states(run, seed, first):
        answer = answers(state)
        loss = mean_loss(experiment.descent, answer, chains)
        apart = distance(answer[matched], head[matched])
        moments.append(Moment(epoch - first, float(state["a"]), loss, apart))
    return moments


def _states(run: NgramRun, seed: int, first: int) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """The model's states from an epoch on: as recorded, or for a full first layer, whose matrices
    are not recorded, from checkpoints.
    """
    if run.recipe.model.first == "full":
        yield from ((epoch, run.state(seed, epoch)) for epoch in run.checkpoints if epoch >= first)
        return
    course = run.course(seed)
    for number in np.flatnonzero(course.epochs >= first).tolist():
        yield int(course.epochs[number]), course.at(number).named()
