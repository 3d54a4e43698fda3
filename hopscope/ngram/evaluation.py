"""What a trained model has become: its chosen set, its distance to an induction head, its transfer.

Beside the model stand other predictors, each of which gives a distribution of the next symbol for
every chain: the generalised induction head (GIH), Bayes, and the truth.
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
"""Chains of a transfer come from seeds no training is likely to use."""
NO_MATCH = -1_000.0
"""An exponent that is nothing beside 0."""

Answers = Float[np.ndarray, "chain symbol"]


def gih(
    chains: Chains, window: int, lags: tuple[int, ...]
) -> tuple[Answers, Bool[np.ndarray, "chain"]]:
    """The generalised induction head (§3), and in which chains it has a match.

    It answers the mean symbol of the positions whose symbols at these lags are the query's; where
    there is none, of all positions that have a whole window.
    """
    rows, matches = pattern_counts(chains.tokens, chains.process.alphabet, window)
    same = matches.at(lags)
    matched: np.ndarray = np.logical_or.reduceat(same[rows.pattern], rows.start[:-1])
    # Attention is shifted in each chain: where nothing matches, everything is equally near.
    return rows.answers(np.where(same, 0.0, NO_MATCH)), matched


def bayes(chains: Chains) -> Answers:
    """The posterior mean under the prior, the parents being known: no answer is better.

    Exact for chains that start evenly. That of a stationary chain's first symbols tell a little
    about its table is left out.
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


def mean_loss(descent: Descent, answers: Answers, chains: Chains) -> float:
    """The mean loss of these answers, as training counts it."""
    chosen = answers[np.arange(len(chains)), chains.targets]
    if descent.loss == "softmax":
        return float((np.log(np.exp(answers).sum(axis=1)) - chosen).mean())
    return float(-np.log(chosen + descent.epsilon).mean())


def expected_loss(answers: Answers, chains: Chains, epsilon: float) -> float:
    """The log loss over every symbol that could have followed, not the one that did."""
    return float(-(chains.truth() * np.log(answers + epsilon)).sum(axis=1).mean())


def distance(one: Answers, other: Answers) -> float:
    """The mean total variation between two answers to each chain; NaN if there are no chains."""
    return float(0.5 * np.abs(one - other).sum(axis=1).mean()) if len(one) else float("nan")


@dataclass(frozen=True)
class Choice:
    """The set with the largest coefficient, and the lags that its heads copy most of."""

    heads: tuple[int, ...]
    lags: tuple[int, ...]
    share: float
    """This set's share in the sum of squared coefficients, from 0 to 1."""
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
class ComparedLosses:
    """Mean losses of the model and of others, on the same chains."""

    model: float
    gih: float
    bayes: float
    truth: float


@dataclass(frozen=True)
class Evaluation:
    """A model beside the generalised induction head, Bayes and the truth."""

    seen: ComparedLosses
    """The mean losses on the symbols that followed, in the loss that training minimises."""
    expected: ComparedLosses
    """The log loss over all symbols that could have followed."""
    distance: float
    """Mean total variation between model and GIH over the parents, in chains where GIH has a
    match; not a number if there are none."""
    matched: float
    """The share of the chains in which GIH has a match."""


def compare(experiment: NgramExperiment, answer: Answers, chains: Chains) -> Evaluation:
    """A model's answers to chains beside those of the other predictors."""
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
) -> Answers:
    """The model's answers to chains in this state."""
    return answerer(experiment, chains)(state)


def validated(run: NgramRun, seed: int) -> tuple[Parameters, Evaluation]:
    """The trained parameters of a seed, and its model beside others on its validation chains."""
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
    """The trained model on fresh chains of other lengths (default: those that are longer than its
    window), and of other priors.
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
    """Epochs since the last stage began."""
    a: float
    loss: float
    distance: float
    """Mean total variation to GIH, over validation chains where GIH has a match."""


def approach(run: NgramRun, seed: int) -> list[Moment]:
    """How the model came near the induction head in the last stage."""
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
    """The model from an epoch on: as recorded, or, since matrices are not, its checkpoints."""
    if run.recipe.model.first == "full":
        yield from ((epoch, run.state(seed, epoch)) for epoch in run.checkpoints if epoch >= first)
        return
    course = run.course(seed)
    for number in np.flatnonzero(course.epochs >= first).tolist():
        yield int(course.epochs[number]), course.at(number).named()
