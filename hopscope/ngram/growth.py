"""How the scale a grows in the last stage, and why it grows as fast as it does.

Let a match have the similarity 1 and any other position 1 − gap. Then a chain's answer to the
symbol that follows is (h + h′ e^(−a·gap)) / (m + m′ e^(−a·gap)), with m matches, h of them followed
by that symbol, and m′ and h′ of the other positions. Descent on a under this loss alone is a model
of stage III in one number, and its assumptions can be taken away one by one.
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
"""The part of its way over which the growth of a is fitted."""


@dataclass(frozen=True)
class Growth:
    """A line fitted to a against the logarithm of the epoch."""

    slope: float
    straightness: float
    """R² of the fitted line: 1 if a grows exactly with the logarithm of the epoch."""
    end: float
    """The value of a at the end of the training."""


def growth(course: Course, first: int) -> Growth:
    """The growth of a from this epoch on."""
    since = course.epochs >= first
    return fitted(course.epochs[since] - first, course.a[since])


def fitted(epochs: Int[np.ndarray, "moment"], a: Float[np.ndarray, "moment"]) -> Growth:
    """The line through a, while it goes from a fifth to four fifths of its way."""
    way = (a - a[0]) / (a[-1] - a[0])
    chosen = (way >= WAY[0]) & (way <= WAY[1]) & (epochs > 0)
    x, y = np.log(epochs[chosen]), a[chosen]
    slope, offset = np.polyfit(x, y, 1)
    left = ((y - slope * x - offset) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return Growth(float(slope), float(1 - left), float(a[-1]))


def gap(experiment: NgramExperiment, parameters: Parameters, chains: Chains) -> float:
    """How much more similar the least similar match of the parents is than any other position.

    Not a number where there are none. It says nothing of a full first layer's matrices.
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
    """How often each chain has a match, and how often the symbol that follows came after one."""

    matches: Float[np.ndarray, "chain"]
    others: Float[np.ndarray, "chain"]
    """Positions that do not match."""
    hits: Float[np.ndarray, "chain"]
    """Matches that are followed by the symbol to be predicted."""
    other_hits: Float[np.ndarray, "chain"]
    """Other positions that are followed by it."""

    def with_hits(self) -> "MatchCounts":
        """The chains in which some match was followed by the right symbol."""
        kept = self.hits > 0
        return MatchCounts(*(counts[kept] for counts in astuple(self)))

    def even(self) -> "MatchCounts":
        """As if every chain had as many matches as all have on average, with its own shares."""
        matches = np.full_like(self.matches, self.matches.mean())
        others = np.full_like(self.others, self.others.mean())
        hits = matches * self.hits / np.maximum(self.matches, 1)
        other_hits = others * self.other_hits / np.maximum(self.others, 1)
        return MatchCounts(matches, others, hits, other_hits)


def match_counts(experiment: NgramExperiment, chains: Chains) -> MatchCounts:
    """The counts of these chains, over the parents."""
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
    """The scale a from `begin` through the epochs of descent on −log(answer + ε), by counts."""
    columns = np.stack(astuple(counts), axis=1)
    kinds, number = np.unique(columns, axis=0, return_counts=True)
    matches, others, hits, other_hits = kinds.T
    weight = number / number.sum()
    course = np.empty(epochs + 1)
    course[0] = a = begin
    for epoch in range(epochs):
        power = np.exp(-a * gap)
        whole, right = matches + others * power, hits + other_hits * power
        up = gap * power * (others * right - other_hits * whole) / whole**2  # of the answer, by a
        a += rate * float(weight @ (up / (right / whole + epsilon)))
        course[epoch + 1] = a
    return course


@dataclass(frozen=True)
class GrowthExplained:
    """The scale a in its stage: as trained, and descended by counts alone."""

    gap: float
    """How much more similar a match is than any other position, after training."""
    epochs: Int[np.ndarray, "moment"]
    """The epochs of the stage at which a was recorded."""
    courses: Mapping[str, Float[np.ndarray, "moment"]]
    """The scale a at these epochs; `growth_explained` says under which assumptions."""

    def slope(self, name: str) -> float:
        """The slope of one of the courses by the logarithm of the epoch."""
        return fitted(self.epochs, self.courses[name]).slope


def growth_explained(run: NgramRun, seed: int) -> GrowthExplained:
    """Why a grows as it does, by taking assumptions away one by one.

    trained: as it was. counts: with the counts of every chain. found: of the chains alone in
    which some match was followed by the right symbol, so that nothing speaks against a. even: as
    if all chains had as many matches. With both, a grows as log(t)/gap.
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
