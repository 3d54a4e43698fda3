"""The kinds of rows in the tables of Chen et al. (NeurIPS 2024); `what` says which a row is."""

from typing import Literal

from pydantic import StrictFloat, StrictInt

from hopscope.papers.row import JsonObject, Numbers, Record, ResultRow

Lags = tuple[StrictInt, ...]
"""The lag of each head of a set."""


class MeanLosses(Record):
    """The loss of the model and of three others, on the same chains."""

    model: StrictFloat
    gih: StrictFloat
    """The generalised induction head over the parents."""
    bayes: StrictFloat
    truth: StrictFloat


class SeedRow(ResultRow):
    """The results of the three stages of training for one seed."""

    what: Literal["seed"]
    seed: StrictInt
    parents: Lags
    chosen_lags: Lags
    """The lags of the set that won stage I."""
    share_after_stage_1: StrictFloat
    """The share of the chosen set in the sum of squared coefficients, after stage I."""
    attention_before: Numbers
    """The largest attention of each head of the set before training."""
    attention_after: Numbers
    """The largest attention of each head of the set after training."""
    a: StrictFloat
    """The scale of the second layer after training."""
    slope_by_log_epoch: StrictFloat
    """The growth of a by the logarithm of the epoch, in the last stage."""
    r2: StrictFloat
    """R² of the fit of `slope_by_log_epoch`: 1 if the growth is a straight line."""
    one_over_gap: StrictFloat
    """One over the gap between matches and the most similar other position."""
    distance_begin: StrictFloat
    """The distance to the generalised induction head as the last stage begins."""
    distance_end: StrictFloat
    """The distance to the generalised induction head as the last stage ends."""
    seconds: StrictFloat
    """How long the training of all seeds together took."""


class TransferRow(ResultRow):
    """A trained model on chains of another length, or from another prior."""

    what: Literal["transfer"]
    seed: StrictInt
    varied: Literal["length", "alpha"]
    length: StrictInt
    alpha: StrictFloat
    distance: StrictFloat
    """The mean distance to the generalised induction head, over chains in which that matches."""
    matched: StrictFloat
    """The share of the chains in which the generalised induction head finds a match."""
    loss: MeanLosses

    @property
    def value(self) -> int | float:
        """The length or the prior, whichever was varied."""
        return self.length if self.varied == "length" else self.alpha


class CourseRow(ResultRow):
    """The course of one seed's training, at a few epochs."""

    what: Literal["course"]
    seed: StrictInt
    stages: tuple[tuple[str, StrictInt], ...]
    """For each stage, the letters of the parameters it trains, and its number of epochs."""
    epochs: tuple[StrictInt, ...]
    shares: dict[str, Numbers]
    """Each set's share of the sum of squared coefficients."""
    attention: dict[str, Numbers]
    """The attention of each head of the winning set to its lag."""
    a: Numbers
    train: Numbers
    validation: Numbers
    distance: tuple[StrictFloat | None, ...]
    """The distance to the generalised induction head; None before the last stage."""


class GrowthRow(ResultRow):
    """How a grows in the last stage of one seed, as trained and by counts of matches alone."""

    what: Literal["growth"]
    seed: StrictInt
    one_over_gap: StrictFloat
    slopes: dict[str, StrictFloat]
    """The slope by the logarithm of the epoch of each course."""
    epochs: tuple[StrictInt, ...]
    courses: dict[str, Numbers]
    """The scale a at these epochs, under the assumptions of `hopscope.ngram.growth_explained`."""
    seconds: StrictFloat
    """How long the training of all seeds together took."""


class ChoiceRow(ResultRow):
    """The set that won stage I in one setting with one seed, and the sets that rules predict."""

    what: Literal["choice"]
    setting: str
    seed: StrictInt
    predicted: dict[str, Lags]
    """The winner by each rule: the paper's, and through the heads as they begin."""
    chosen_lags: Lags
    share: StrictFloat
    """The part in the sum of squared coefficients that the chosen set has at the end."""
    seconds: StrictFloat
    """How long the training of all seeds together took."""


class SettingRow(ResultRow):
    """The results of one seed in one setting."""

    what: Literal["setting"]
    setting: str
    seed: StrictInt
    changes: dict[str, JsonObject]
    """The differences from the paper's experiment."""
    seconds: StrictFloat
    """How long the training of all seeds together took."""
    parents: Lags
    predicted: dict[str, Lags]
    """The winner of stage I by each rule: the paper's, and through the heads as they begin."""
    chosen_lags: Lags
    share: StrictFloat
    """The part in the sum of squared coefficients that the chosen set has at the end."""
    attention: Numbers
    """The largest attention of each head of that set at the end."""
    a: StrictFloat
    slopes_of_a: dict[str, StrictFloat]
    """How much a grows per factor e of epochs, by epoch of the last stage."""
    loss: MeanLosses
    """The mean losses on the actual next symbols."""
    expected: MeanLosses
    """The mean losses, averaged over all possible next symbols."""
    distance: StrictFloat
    matched: StrictFloat
