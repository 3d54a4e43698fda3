"""How the scale a grows in the last stage, and why it grows as fast as it does.

Let a match have the similarity 1 and any other position 1 − gap. Then a chain's answer to the
symbol that follows is (h + h′ e^(−a·gap)) / (m + m′ e^(−a·gap)), with m matches, h of them followed
by that symbol, and m′ and h′ of the other positions. Descent on a under this loss alone is a model
of stage III in one number, and its assumptions can be taken away one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError
from hopscope.ngram.counts import Counts, counted
from hopscope.ngram.learner import drawn
from hopscope.ngram.matches import Matches
from hopscope.ngram.objective import Objective
from hopscope.ngram.parameters import Parameters
from hopscope.ngram.process import Chains
from hopscope.ngram.run import Course, NgramRun

WAY = (0.2, 0.8)
"""The part of its way over which the growth of a is fitted."""


@dataclass(frozen=True)
class Growth:
    """A line fitted to a against the logarithm of the epoch."""

    slope: float
    straightness: float
    """R² of the fitted line: 1 if a grows exactly with the logarithm of the epoch."""
    epochs: tuple[int, int]
    """The first and the last epoch of the fit: while a goes from a fifth to four fifths of its
    way."""
    end: float
    """The value of a at the end of the training."""


def growth(course: Course, first: int) -> Growth:
    """The growth of a from this epoch on."""
    since = course.epochs >= first
    return fitted(course.epochs[since] - first, course.a[since])


def fitted(epochs: Int[np.ndarray, "moment"], a: Float[np.ndarray, "moment"]) -> Growth:
    """The line through a at these epochs of its stage."""
    way = (a - a[0]) / (a[-1] - a[0])
    chosen = (way >= WAY[0]) & (way <= WAY[1]) & (epochs > 0)
    x, y = np.log(epochs[chosen]), a[chosen]
    slope, offset = np.polyfit(x, y, 1)
    left = ((y - slope * x - offset) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    between = (int(epochs[chosen][0]), int(epochs[chosen][-1]))
    return Growth(float(slope), float(1 - left), between, float(a[-1]))


def gap(experiment: NgramExperiment, parameters: Parameters, chains: Chains) -> float:
    """How much more similar the least similar match of the parents is than any other position.

    Not a number where there are none. It says nothing of a full first layer's matrices.
    """
    model = experiment.model
    _, matches = counted(chains, model.window, model.unit_copies)
    same = _matching(experiment, matches)
    similar = Objective(model, matches).scaled(
        Parameters(parameters.c, parameters.w, np.array(1.0))
    )
    if not same.any() or same.all():
        return float("nan")
    return float(similar[same].min() - similar[~same].max())


def _matching(experiment: NgramExperiment, matches: Matches) -> np.ndarray:
    """Which patterns have the query's symbols at the lags of all parents."""
    window = experiment.model.window
    square = matches.cross.reshape(-1, window, window)
    found: np.ndarray = np.all(
        [square[:, lag - 1, lag - 1] for lag in experiment.process.parents], axis=0
    )
    return found


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

    def where_found(self) -> "MatchCounts":
        """The chains in which some match was followed by the right symbol."""
        kept = self.hits > 0
        return MatchCounts(
            self.matches[kept], self.others[kept], self.hits[kept], self.other_hits[kept]
        )

    def even(self) -> "MatchCounts":
        """As if every chain had as many matches as all have on average, with its own shares."""
        ones = np.ones_like(self.matches)
        share = self.hits / np.maximum(self.matches, 1)
        other = self.other_hits / np.maximum(self.others, 1)
        matches, others = ones * self.matches.mean(), ones * self.others.mean()
        return replace(
            self, matches=matches, others=others, hits=matches * share, other_hits=others * other
        )


def match_counts(experiment: NgramExperiment, chains: Chains) -> MatchCounts:
    """The counts of these chains, over the parents."""
    counts, matches = counted(chains, experiment.model.window)
    same = _matching(experiment, matches)[counts.pattern]
    total, hits = counts.symbols.sum(axis=1), _following(counts)
    entries = counts.chain()

    def summed(values: np.ndarray) -> Float[np.ndarray, "chain"]:
        return np.bincount(entries, values, minlength=len(counts))

    return MatchCounts(
        summed(total * same), summed(total * ~same), summed(hits * same), summed(hits * ~same)
    )


def _following(counts: Counts) -> Int[np.ndarray, "entry"]:
    """How often each entry was followed by the symbol that its chain is asked for."""
    found: np.ndarray = np.take_along_axis(
        counts.symbols, counts.targets[counts.chain()][:, None], axis=1
    )[:, 0]
    return found


def grown(
    found: MatchCounts, gap: float, begin: float, epochs: int, rate: float, epsilon: float
) -> Float[np.ndarray, "epoch"]:
    """The scale a from `begin` through the epochs of descent on −log(answer + ε), by counts."""
    columns = (found.matches, found.others, found.hits, found.other_hits)
    kinds, number = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
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
    size = gap(experiment, course.at(-1), drawn(experiment, seed, "validation"))
    known = match_counts(experiment, drawn(experiment, seed, "train"))
    found = known.where_found()
    counted_only = {"counts": known, "found": found, "even": known.even(),
                    "found and even": found.even()}  # fmt: skip
    begin, rest = float(trained[0]), (epochs, descent.lr, descent.epsilon)
    courses = {name: grown(each, size, begin, *rest) for name, each in counted_only.items()}
    counted_at = {name: each[moments] for name, each in courses.items()}
    return GrowthExplained(size, moments, {"trained": trained, **counted_at})
