"""How fast the scale a grows in the last stage, and why.

Let a match have similarity 1 and any other position 1 − gap. Then the predicted probability of the
next symbol is (h + h′ e^(−a·gap)) / (m + m′ e^(−a·gap)), where m positions match, h of them are
followed by that symbol, and m′ and h′ are the same counts for the other positions. Gradient descent
on a with this loss is a one-parameter model of stage III, whose assumptions can be dropped one by
one.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass

import numpy as np
from jaxtyping import Float, Int

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError
from hopscope.ngram.counts import pattern_counts
from hopscope.ngram.parameters import Course, Parameters
from hopscope.ngram.process import Chains
from hopscope.ngram.run import NgramRun
from hopscope.ngram.similarity import MatchSimilarity
from hopscope.ngram.trainer import chains_of

WAY = (0.2, 0.8)
"""The growth of a is fitted between these shares of its way from start to end."""
POINTS = 3
"""The least number of records for a fit: two always lie on a line."""


@dataclass(frozen=True)
class Growth:
    """A line fitted to a against the logarithm of the epoch."""

    slope: float
    straightness: float
    """R² of the fitted line: 1 if a grows exactly with the logarithm of the epoch."""
    end: float
    """The value of a at the end of the training."""


def growth(course: Course, first: int) -> Growth:
    """The growth of a from the epoch `first` on."""
    since = course.epochs >= first
    return fitted(course.epochs[since] - first, course.a[since])


def fitted(epochs: Int[np.ndarray, "moment"], a: Float[np.ndarray, "moment"]) -> Growth:
    """The line fitted to a between a fifth and four fifths of its way."""
    way = (a - a[0]) / ((a[-1] - a[0]) or np.nan)
    chosen = (way >= WAY[0]) & (way <= WAY[1]) & (epochs > 0)
    if chosen.sum() < POINTS:
        raise ConfigError(
            f"a has {chosen.sum()} records between a fifth and four fifths of its way from "
            f"{a[0]:.3g} to {a[-1]:.3g}, and a line is fitted to {POINTS} or more: train the stage "
            "of a longer, or record more epochs (descent.records)"
        )
    x, y = np.log(epochs[chosen]), a[chosen]
    slope, offset = np.polyfit(x, y, 1)
    left = ((y - slope * x - offset) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return Growth(float(slope), float(1 - left), float(a[-1]))


def gap(experiment: NgramExperiment, parameters: Parameters, chains: Chains) -> float:
    """The similarity of the least similar match of the parents minus that of the most similar other
    position; NaN if there is no match, or no other position.

    It ignores the matrices of a full first layer.
    """
    model, process = experiment.model, experiment.process
    _, matches = pattern_counts(chains.tokens, process.alphabet, model.window, model.unit_copies)
    same, similarity = matches.at(process.parents), MatchSimilarity(model, matches)
    if not same.any() or same.all():
        return float("nan")
    similarity.restore(parameters.named())
    return float(similarity.similar[same].min() - similarity.similar[~same].max())


@dataclass(frozen=True)
class MatchCounts:
    """For each chain, the number of matches, and of matches followed by the target symbol."""

    matches: Float[np.ndarray, "chain"]
    others: Float[np.ndarray, "chain"]
    """The number of positions that do not match."""
    hits: Float[np.ndarray, "chain"]
    """The number of matches followed by the target symbol."""
    other_hits: Float[np.ndarray, "chain"]
    """The number of other positions followed by the target symbol."""

    def with_hits(self) -> "MatchCounts":
        """The counts of chains in which some match is followed by the target symbol."""
        kept = self.hits > 0
        return MatchCounts(*(counts[kept] for counts in astuple(self)))

    def even(self) -> "MatchCounts":
        """Counts as if every chain had the average number of matches, with its own hit rates."""
        matches = np.full_like(self.matches, self.matches.mean())
        others = np.full_like(self.others, self.others.mean())
        hits = matches * self.hits / np.maximum(self.matches, 1)
        other_hits = others * self.other_hits / np.maximum(self.others, 1)
        return MatchCounts(matches, others, hits, other_hits)


def match_counts(experiment: NgramExperiment, chains: Chains) -> MatchCounts:
    """The counts of these chains, with matches at the lags of the parents."""
    process = experiment.process
    rows, matches = pattern_counts(chains.tokens, process.alphabet, experiment.model.window)
    rows = rows.for_loss(chains.targets, every_symbol=False)
    same = matches.at(process.parents)[rows.pattern]
    (hits, matching), (other_hits, others) = (
        np.add.reduceat(rows.counts * chosen, rows.start[:-1], axis=1) for chosen in (same, ~same)
    )
    return MatchCounts(matching, others, hits, other_hits)


def grown(
    counts: MatchCounts, gap: float, begin: float, epochs: int, rate: float, epsilon: float
) -> Float[np.ndarray, "epoch"]:
    """The scale a at every epoch of gradient descent on −log(answer + ε), from `begin`, computed
    from counts.
    """
    columns = np.stack(astuple(counts), axis=1)
    kinds, number = np.unique(columns, axis=0, return_counts=True)
    matches, others, hits, other_hits = kinds.T
    weight = number / number.sum()
    course = np.empty(epochs + 1)
    course[0] = a = begin
    for epoch in range(epochs):
        power = np.exp(-a * gap)
        whole, right = matches + others * power, hits + other_hits * power
        up = gap * power * (others * right - other_hits * whole) / whole**2  # d answer / d a
        a += rate * float(weight @ (up / (right / whole + epsilon)))
        course[epoch + 1] = a
    return course


@dataclass(frozen=True)
class GrowthExplained:
    """The scale a in the last stage: as trained, and as computed from counts."""

    gap: float
    """How much more similar a match is than any other position, after training."""
    epochs: Int[np.ndarray, "moment"]
    """The epochs of the stage at which a was recorded."""
    courses: Mapping[str, Float[np.ndarray, "moment"]]
    """The scale a at these epochs under each assumption (see `growth_explained`)."""

    def slope(self, name: str) -> float:
        """The slope of one of the courses against the logarithm of the epoch."""
        return fitted(self.epochs, self.courses[name]).slope


def growth_explained(run: NgramRun, seed: int) -> GrowthExplained:
    """Why a grows as fast as it does: its growth as trained, and under several assumptions.

    trained: as trained. counts: computed from the counts of every chain. found: only with chains in
    which some match is followed by the target symbol, so that no answer vanishes for a large a.
    even: as if all chains had the same number of matches. With both, a grows as log(t)/gap.
    """
    experiment, course = run.recipe, run.course(seed)
    descent = experiment.descent
    letters, epochs = descent.plan()[-1]
    if (letters, descent.loss, experiment.model.first) != ("a", "log", "copies"):
        raise ConfigError(
            f"the growth of a is explained for stages that end with a alone, the loss log and a "
            f"first layer of copies; got {letters}, {descent.loss}, {experiment.model.first}"
        )
    first = experiment.steps - epochs
    since = course.epochs >= first
    moments, trained = course.epochs[since] - first, course.a[since]
    size = gap(experiment, course.at(-1), chains_of(experiment, seed, "validation"))
    counts = match_counts(experiment, chains_of(experiment, seed, "train"))
    assumed = {"counts": counts, "found": counts.with_hits(), "even": counts.even(),
               "found and even": counts.with_hits().even()}  # fmt: skip
    begin, rest = float(trained[0]), (epochs, descent.lr, descent.epsilon)
    courses = {name: grown(each, size, begin, *rest)[moments] for name, each in assumed.items()}
    return GrowthExplained(size, moments, {"trained": trained, **courses})
