"""What else could answer: the generalised induction head, Bayes, and the truth.

Each takes chains and gives a distribution of the next symbol for each.
"""

import numpy as np
from jaxtyping import Bool, Float

from hopscope.configs import Descent
from hopscope.ngram.counts import counted
from hopscope.ngram.process import Chains, configuration

NO_MATCH = -1_000.0
"""An exponent that is nothing beside 0."""

Answers = Float[np.ndarray, "chain symbol"]


def gih(
    chains: Chains, window: int, lags: tuple[int, ...]
) -> tuple[Answers, Bool[np.ndarray, "chain"]]:
    """The generalised induction head (§3), and in which chains it finds a match.

    It answers the mean symbol of the positions whose symbols at these lags are the query's; where
    there is none, of all positions that have a whole window.
    """
    counts, matches = counted(chains, window)
    square = matches.cross.reshape(-1, window, window)
    same = np.all([square[:, lag - 1, lag - 1] for lag in lags], axis=0)
    found: np.ndarray = np.add.reduceat(same[counts.pattern].astype(int), counts.start[:-1]) > 0
    # Attention is shifted in each chain: where nothing matches, everything is equally near.
    return counts.attended(np.where(same, 0.0, NO_MATCH)), found


def bayes(chains: Chains) -> Answers:
    """The posterior mean under the prior, the parents being known: no answer is better.

    Exact for chains that start evenly. That of a stationary chain's first symbols tell a little
    about its table is left out.
    """
    process, tokens = chains.process, chains.tokens
    end = tokens.shape[1] - 1
    asked = configuration(process, tokens, end)
    tally = np.full((len(chains), process.alphabet), process.alpha)
    for place in range(process.memory, end):
        same = configuration(process, tokens, place) == asked
        tally[same, tokens[same, place]] += 1
    answers: np.ndarray = tally / tally.sum(axis=1, keepdims=True)
    return answers


def evenly(chains: Chains) -> Answers:
    """Every symbol is as likely as any other."""
    return np.full((len(chains), chains.process.alphabet), 1 / chains.process.alphabet)


def truth(chains: Chains) -> Answers:
    """The chain's own table: what cannot be known from the chain alone."""
    return chains.truth()


def mean_loss(descent: Descent, answers: Answers, chains: Chains) -> float:
    """The loss of these answers, as training counts it."""
    chosen = answers[np.arange(len(chains)), chains.targets]
    if descent.loss == "softmax":
        return float((np.log(np.exp(answers).sum(axis=1)) - chosen).mean())
    return float(-np.log(chosen + descent.epsilon).mean())


def expected_loss(answers: Answers, chains: Chains, epsilon: float) -> float:
    """The log loss over every symbol that could have followed, not the one that did."""
    return float(-(chains.truth() * np.log(answers + epsilon)).sum(axis=1).mean())


def distance(one: Answers, other: Answers) -> Float[np.ndarray, "chain"]:
    """Total variation between two answers to each chain."""
    total: np.ndarray = 0.5 * np.abs(one - other).sum(axis=1)
    return total
