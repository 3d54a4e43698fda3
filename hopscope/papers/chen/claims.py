"""What Chen et al., *Unveiling Induction Heads* (NeurIPS 2024), say, and how we judge it.

Here are the claims about the paper's setting, judged over seeds; those in setting_claims are
about others. No number of ours stands here: values come from the rows, tolerances are named.
"""

from math import exp
from typing import Literal

from hopscope.configs import NgramProcess
from hopscope.papers.chen.judges import NEAR, chosen_over_seeds, distances, lags, over
from hopscope.papers.chen.rows import GrowthRow, SeedRow, TransferRow
from hopscope.papers.chen.setting_claims import IN_SETTINGS
from hopscope.papers.claim import Claim, span

ALL = 0.99
"""A share or an attention that counts as all of it."""
NOTHING = 0.01
"""A weight, relative to that of a match, that counts as nothing."""
STRAIGHT = 0.99
"""The R² from which on a fit counts as a straight line."""
SLOPE = 0.1
"""The relative error up to which a slope counts as agreeing."""

TRAINING = ("chen/training",)
TRAINED = {"length": NgramProcess().length, "alpha": NgramProcess().alpha}
"""The chains that models are trained on: others are those that differ."""


def _blurred(row: SeedRow) -> float:
    """Weight of the best position that does not match, relative to one that does."""
    return exp(-row.a / row.one_over_gap)


def _carries_over(others: str, says: str, varied: Literal["length", "alpha"]) -> Claim:
    return Claim(
        id=f"chen/carries-over-to-other-{others}",
        says=says,
        where="appendix B",
        paper=f"GIH at other {others}",
        how=f"distance to GIH ≤ {NEAR} on fresh chains of each {varied}, for each seed",
        targets=TRAINING,
        judge=over(
            TransferRow,
            lambda row: row.distance <= NEAR,
            lambda rows: f"{varied} {span(row.value for row in rows)}: {distances(rows)}",
            among=lambda row: row.varied == varied and row.value != TRAINED[varied],
        ),
    )


OVER_SEEDS: tuple[Claim, ...] = (
    Claim(
        id="chen/stage-1-selects-the-parents",
        says="Stage I gives the whole selector to one set of heads, the one that sees the parents.",
        where="stage I; appendix B",
        paper="the parents' set",
        how=f"after stage I the winning set's lags are the parents, its part of Σ c² ≥ {ALL}",
        targets=TRAINING,
        judge=over(
            SeedRow,
            lambda row: row.chosen_lags == row.parents and row.share_after_stage_1 >= ALL,
            lambda rows: (
                f"lags {' / '.join(sorted({lags(row.chosen_lags) for row in rows}))}, "
                f"share {span((row.share_after_stage_1 for row in rows), 3)}"
            ),
        ),
    ),
    Claim(
        id="chen/stage-2-makes-copiers",
        says="Stage II turns each head of that set into a copier of one lag.",
        where="stage II; appendix B",
        paper="attention to one lag tends to 1",
        how=f"each serving head's largest attention grows, and ends ≥ {ALL}",
        targets=TRAINING,
        judge=over(
            SeedRow,
            lambda row: (
                min(row.attention_after) >= ALL
                and max(row.attention_before) < min(row.attention_after)
            ),
            lambda rows: (
                f"{span((one for row in rows for one in row.attention_before), 3)} → "
                f"{span((one for row in rows for one in row.attention_after), 3)}"
            ),
        ),
    ),
    Claim(
        id="chen/stage-3-grows-a",
        says="Stage III grows the second layer's scale a until only matches get attention.",
        where="stage III; appendix B",
        paper="a large",
        how="e^(−a·gap), the weight of the most similar position that does not match relative to "
        f"one that does, ends ≤ {NOTHING}",
        targets=TRAINING,
        judge=over(
            SeedRow,
            lambda row: _blurred(row) <= NOTHING,
            lambda rows: (
                f"a = {span((row.a for row in rows), 2)}, weight {span(map(_blurred, rows), 4)}"
            ),
        ),
    ),
    Claim(
        id="chen/a-grows-as-a-logarithm",
        says="In stage III a grows with the logarithm of time.",
        where="stage III",
        paper="a ~ log t",
        how="a against the logarithm of the epoch is straight from a fifth to four fifths of its "
        f"way: R² ≥ {STRAIGHT}",
        targets=TRAINING,
        judge=over(
            SeedRow,
            lambda row: row.r2 >= STRAIGHT,
            lambda rows: f"R² {span((row.r2 for row in rows), 4)}",
        ),
    ),
    Claim(
        id="chen/slope-of-a",
        says="How fast a grows follows from how often each chain has a match.",
        where="stage III, our derivation: chains that have as many matches each give da/dt ∝ "
        "e^(−a·gap) to leading order",
        paper="a line; by our derivation 1/gap if chains are alike",
        how=f"within {SLOPE:.0%}: descent on a by every chain's counts of matches (counts) has the "
        "slope of the training, and the slope 1/gap once chains are made alike: of those alone in "
        "which some match is followed by the right symbol (found), as if each had as many matches "
        "(even), and both",
        targets=("chen/growth",),
        judge=over(
            GrowthRow,
            lambda row: (
                abs(row.slopes["counts"] / row.slopes["trained"] - 1) <= SLOPE
                and abs(row.slopes["found and even"] / row.one_over_gap - 1) <= SLOPE
            ),
            lambda rows: (
                "; ".join(
                    f"{name} {span((row.slopes[name] for row in rows), 2)}"
                    for name in rows[0].slopes
                )
                + f"; 1/gap = {span((row.one_over_gap for row in rows), 2)}"
            ),
        ),
    ),
    Claim(
        id="chen/limit-is-gih",
        says="What training ends at is the generalised induction head over the parents.",
        where="the limit; with the length, the prior and the alphabet of appendix B",
        paper="GIH",
        how="mean total variation to GIH, over validation chains in which it finds a match, ends "
        f"≤ {NEAR}",
        targets=TRAINING,
        judge=over(
            SeedRow,
            lambda row: row.distance_end <= min(NEAR, row.distance_begin),
            lambda rows: (
                f"{span((row.distance_begin for row in rows), 4)} → "
                f"{span((row.distance_end for row in rows), 4)}"
            ),
        ),
    ),
    Claim(
        id="chen/rule-over-seeds",
        says="With every seed, the set of the largest modified χ² information wins stage I.",
        where="stage I, the rule",
        paper="always",
        how="the set of largest modified χ² mutual information (exact, mean over 300 tables) is "
        "chosen by every seed; reading: heads begin sharp, with 0.999 of their attention at one "
        "lag instead of 0.91",
        targets=("chen/choices",),
        judge=chosen_over_seeds,
    ),
    _carries_over(
        "lengths",
        "A model trained on chains of one length is an induction head on others, too.",
        "length",
    ),
    _carries_over(
        "priors",
        "A model trained on tables from one prior is an induction head on others, too.",
        "alpha",
    ),
    Claim(
        id="chen/predicts-as-well-as-gih",
        says="The trained model predicts at least as well as the generalised induction head.",
        where="the limit, our reading",
        paper="GIH's loss",
        how="expected log loss of the model ≤ GIH's, on fresh chains of each length and α",
        targets=TRAINING,
        judge=over(
            TransferRow,
            lambda row: row.loss.model <= row.loss.gih,
            lambda rows: "model − GIH: " + span((row.loss.model - row.loss.gih for row in rows), 3),
            # Chains as in training stand among those of each length, and of each prior.
            among=lambda row: row.varied == "length" or row.value != TRAINED["alpha"],
        ),
    ),
)

CLAIMS: tuple[Claim, ...] = (*OVER_SEEDS, *IN_SETTINGS)
