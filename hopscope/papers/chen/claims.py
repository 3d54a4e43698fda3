"""The claims of Chen et al., *Unveiling Induction Heads* (NeurIPS 2024), and how they are judged.

First the claims about the paper's own setting, over seeds; then those about other stages, parents,
windows and lengths, and about details that the paper leaves open or that its authors' program does
differently. This module has no measured numbers: values come from the rows, tolerances are named.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import exp
from typing import Any, Literal

from hopscope.configs import NgramProcess
from hopscope.papers.chen.rows import ChoiceRow, GrowthRow, SeedRow, SettingRow, TransferRow
from hopscope.papers.chen.settings import SETTINGS, apart_from_heads, is_sharp
from hopscope.papers.claim import Claim
from hopscope.papers.judge import Judge, group, out_of, span
from hopscope.papers.row import ResultRow

NEAR = 0.02
"""Largest total variation to the induction head at which a model counts as one."""
ALL = 0.99
"""Least share or attention that counts as all."""
NOTHING = 0.01
"""Largest weight, relative to that of a match, that counts as nothing."""
STRAIGHT = 0.99
"""Least R² of a fit that counts as a straight line."""
SLOPE = 0.1
"""Largest relative error of a slope that agrees."""
SAME_LOSS = 0.01
"""Largest relative difference of two losses that count as equal."""
STILL = 0.1
"""Least growth of a per factor e of epochs that counts as growing."""
GROWN_AT = "1000"
"""Epoch of the last stage at which a should still grow."""
RULES = {"paper": "the paper's rule", "heads": "seen through the heads as they begin"}
"""Rules that predict the winner of stage I, by their names in rows."""

PAPER = "the paper's"
"""The setting of appendix B."""
TRAINED = {"length": NgramProcess().length, "alpha": NgramProcess().alpha}
"""Length and prior of the training chains."""
LENGTHS = ("length 10", "length 20", "length 50", PAPER, "length 200", "length 400", "length 1000")
WINDOWS = ("window 2", PAPER, "window 4", "window 6")
LOSSES = {"−log(y + ε)": PAPER, "softmax over y": "cross-entropy of a softmax"}
EPSILONS = {
    "ε = 1e-6": PAPER,
    "ε = 0.01": "epsilon 0.01",
    "softmax over y": "cross-entropy of a softmax",
}
DETAILS = (
    PAPER, "uniform start", "unit copies", "the empty set, too", "other weights 0.1",
    "the authors' program",
)  # fmt: skip
AS_THEY_BEGIN, SHARP = "heads as in the paper", "sharp heads"
"""Initial heads have 0.91 of their attention at one lag, or 0.999."""


def lags(found: Sequence[int]) -> str:
    """Return lags as text: `1,2`."""
    return ",".join(map(str, found))


def all_lags(rows: Sequence[SeedRow | SettingRow]) -> str:
    return " / ".join(sorted({lags(row.chosen_lags) for row in rows}))


def blurred(row: SeedRow) -> float:
    """Return the weight of the best position that does not match, relative to one that does."""
    return exp(-row.a / row.one_over_gap)


def becomes_gih(row: SettingRow) -> bool:
    """Return whether the parents won, and the model is their induction head."""
    return row.chosen_lags == row.parents and row.distance <= NEAR


def distances(rows: Sequence[SettingRow | TransferRow]) -> str:
    return f"distance to GIH {span((row.distance for row in rows), 4)}"


def by_setting(rows: Sequence[SettingRow], value: Callable[[SettingRow], float]) -> str:
    """Return the range of a value over the models of each setting, as text."""
    return "; ".join(
        f"{name}: {span(map(value, own), 4)}"
        for name, own in group(rows, lambda row: row.setting).items()
    )


def same_place(rows: Sequence[SettingRow]) -> bool:
    """Return whether another training ends at the same lags and loss as the paper's, near GIH."""
    paper, other = sorted(rows, key=lambda row: row.setting != PAPER)
    return (
        paper.chosen_lags == other.chosen_lags
        and abs(other.loss.model / paper.loss.model - 1) <= SAME_LOSS
        and other.distance <= NEAR
    )


def comes_nearer(rows: Sequence[SettingRow]) -> bool:
    """Return whether the distance falls from each length to the next longer one."""
    known = {row.setting: row.distance for row in rows}
    return all(known[longer] < known[shorter] for shorter, longer in pairwise(LENGTHS))


def names_winner(row: SettingRow | ChoiceRow, rule: str = "paper") -> bool:
    """Return whether this rule predicted the winning set."""
    return row.predicted.get(rule) == row.chosen_lags


def named_in(rows: Sequence[SettingRow | ChoiceRow]) -> str:
    """Return as text in how many settings the paper's rule predicted all winners, and for how many
    models the rule through the initial heads did.
    """
    settings = group(rows, lambda row: row.setting)
    right = sum(all(map(names_winner, own)) for own in settings.values())
    through = sum(names_winner(row, "heads") for row in rows)
    return (
        f"{out_of(right, len(settings))} settings (through the heads as they begin, a rule of "
        f"ours: {out_of(through, len(rows))} models)"
    )


MEASURED_IN: Mapping[type[ResultRow], str] = {
    SeedRow: "chen/training",
    TransferRow: "chen/training",
    GrowthRow: "chen/growth",
    ChoiceRow: "chen/choices",
    SettingRow: "chen/settings",
}
"""The experiment that measures each kind of row."""


def _claim(
    name: str, says: str, where: str, paper: str, how: str, kind: type[ResultRow],
    **judged: Any,
) -> Claim:  # fmt: skip
    """Make a claim about rows of this kind; `judged` are the other fields of its judge, and the
    claim's origin if that is not the paper.
    """
    needs, origin = (MEASURED_IN[kind],), judged.pop("origin", "paper")
    judge = Judge(kind, **judged)
    return Claim(f"chen/{name}", says, where, paper, how, needs, judge, origin=origin)


def _in_each(settings: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a judge for a claim that must hold in each of these settings."""
    return {
        "among": lambda row: row.setting in settings,
        "setting": lambda row: row.setting,
        "settings": tuple(settings),
    }


def _under(variants: Mapping[str, str], known: Any = lambda _: True) -> dict[str, Any]:
    """Return the fields of a judge for variants of an open choice, each of which is a setting."""
    names = {setting: name for name, setting in variants.items()}
    return {
        "among": lambda row: row.setting in names and known(row),
        "variant": lambda row: names[row.setting],
        "first": next(iter(variants)),
    }


RULE = (
    "the set of largest modified χ² mutual information (exact, mean over 300 tables) is the chosen "
    "one; open: whether heads begin sharp, with 0.999 of their attention at one lag instead of 0.91"
)
BY_RULE: Any = {
    "holds": names_winner,
    "ours": named_in,
    "variant": lambda row: SHARP if is_sharp(SETTINGS[row.setting]) else AS_THEY_BEGIN,
    "first": AS_THEY_BEGIN,
    "setting": lambda row: apart_from_heads(SETTINGS[row.setting]),
}
"""How a claim is judged that the modified χ² information predicts the winning set: the variants are
initial heads as in the paper, and sharp ones, which copy one lag each.
"""


def _carries_over(varied: Literal["length", "alpha"], others: str, trained_on: str) -> Claim:
    return _claim(
        f"carries-over-to-other-{others}",
        f"A model trained on {trained_on} is an induction head on others, too.",
        "appendix B", f"GIH at other {others}",
        f"distance to GIH ≤ {NEAR} on fresh chains of each {varied} in which GIH finds a match, "
        "for each seed",
        TransferRow,
        holds=lambda row: row.distance <= NEAR,
        ours=lambda rows: f"{varied} {span(row.value for row in rows)}: {distances(rows)}",
        among=lambda row: row.varied == varied and row.value != TRAINED[varied],
    )  # fmt: skip


def _ends_there(setting: str, says: str) -> Claim:
    return _claim(
        setting.lower().replace(" ", "-"), says, "appendix B", "GIH",
        f"the same lags, validation loss within {SAME_LOSS:.0%}, distance to GIH ≤ {NEAR}",
        SettingRow,
        holds=same_place,
        ours=lambda rows: (
            f"lags {all_lags(rows)}; losses {by_setting(rows, lambda row: row.loss.model)}; "
            f"{distances(rows)}"
        ),
        of="seed", **_in_each((PAPER, setting)),
    )  # fmt: skip


CLAIMS: tuple[Claim, ...] = (
    _claim(
        "stage-1-selects-the-parents",
        "Stage I gives the whole selector to one set of heads, the one that sees the parents.",
        "stage I; appendix B", "the parents' set",
        f"after stage I the winning set's lags are the parents, its part of Σ c² ≥ {ALL}",
        SeedRow,
        holds=lambda row: row.chosen_lags == row.parents and row.share_after_stage_1 >= ALL,
        ours=lambda rows: (
            f"lags {all_lags(rows)}, share {span((r.share_after_stage_1 for r in rows), 3)}"
        ),
    ),
    _claim(
        "stage-2-makes-copiers",
        "Stage II turns each head of that set into a copier of one lag.",
        "stage II; appendix B", "attention to one lag tends to 1",
        f"each serving head's largest attention grows, and ends ≥ {ALL}",
        SeedRow,
        holds=lambda row: (
            min(row.attention_after) >= ALL
            and max(row.attention_before) < min(row.attention_after)
        ),
        ours=lambda rows: (
            f"{span((one for row in rows for one in row.attention_before), 3)} → "
            f"{span((one for row in rows for one in row.attention_after), 3)}"
        ),
    ),
    _claim(
        "stage-3-grows-a",
        "Stage III grows the second layer's scale a until only matches get attention.",
        "stage III; appendix B", "a large",
        "e^(−a·gap), the weight of the most similar position that does not match relative to one "
        f"that does, ends ≤ {NOTHING}",
        SeedRow,
        holds=lambda row: blurred(row) <= NOTHING,
        ours=lambda rows: (
            f"a = {span((row.a for row in rows), 2)}, weight {span(map(blurred, rows), 4)}"
        ),
    ),
    _claim(
        "a-grows-as-a-logarithm",
        "In stage III a grows with the logarithm of time.",
        "stage III", "a ~ log t",
        "a against the logarithm of the epoch is straight from a fifth to four fifths of its way: "
        f"R² ≥ {STRAIGHT}",
        SeedRow,
        holds=lambda row: row.r2 >= STRAIGHT,
        ours=lambda rows: f"R² {span((row.r2 for row in rows), 4)}",
    ),
    _claim(
        "slope-of-a",
        "How fast a grows follows from how often each chain has a match.",
        "stage III, our derivation: chains that have as many matches each give da/dt ∝ "
        "e^(−a·gap) to leading order",
        "a line; by our derivation 1/gap if chains are alike",
        f"within {SLOPE:.0%}: descent on a by every chain's counts of matches (counts) has the "
        "slope of the training, and the slope 1/gap once chains are made alike: of those alone in "
        "which some match is followed by the right symbol (found), as if each had as many matches "
        "(even), and both",
        GrowthRow,
        holds=lambda row: (
            abs(row.slopes["counts"] / row.slopes["trained"] - 1) <= SLOPE
            and abs(row.slopes["found and even"] / row.one_over_gap - 1) <= SLOPE
        ),
        ours=lambda rows: (
            "; ".join(
                f"{name} {span((row.slopes[name] for row in rows), 2)}" for name in rows[0].slopes
            )
            + f"; 1/gap = {span((row.one_over_gap for row in rows), 2)}"
        ),
        origin="ours",
    ),
    _claim(
        "limit-is-gih",
        "What training ends at is the generalised induction head over the parents.",
        "the limit; with the length, the prior and the alphabet of appendix B", "GIH",
        "mean total variation to GIH, over validation chains in which it finds a match, ends ≤ "
        f"{NEAR}",
        SeedRow,
        holds=lambda row: row.distance_end <= min(NEAR, row.distance_begin),
        ours=lambda rows: (
            f"{span((row.distance_begin for row in rows), 4)} → "
            f"{span((row.distance_end for row in rows), 4)}"
        ),
    ),
    _claim(
        "rule-over-seeds",
        "With every seed, the set of the largest modified χ² information wins stage I.",
        "stage I, the rule; with more seeds than chen/information-names-the-winner", "always",
        RULE, ChoiceRow, **BY_RULE, origin="ours",
    ),
    _carries_over("length", "lengths", "chains of one length"),
    _carries_over("alpha", "priors", "tables from one prior"),
    _claim(
        "predicts-as-well-as-gih",
        "The trained model predicts at least as well as the generalised induction head.",
        "the limit, our question", "GIH's loss",
        "expected log loss of the model ≤ GIH's, on fresh chains of each length and α",
        TransferRow,
        holds=lambda row: row.loss.model <= row.loss.gih,
        ours=lambda rows: (
            "model − GIH: " + span((row.loss.model - row.loss.gih for row in rows), 3)
        ),
        # Chains as in training occur both among the lengths and among the priors: count once.
        among=lambda row: row.varied == "length" or row.value != TRAINED["alpha"],
        origin="ours",
    ),
    _ends_there(
        "C and W together",
        "Training selector and heads together, and then a, ends at the same place.",
    ),
    _ends_there("all at once", "Training everything at once ends at the same place."),
    _claim(
        "information-names-the-winner",
        "The set with the largest modified χ² mutual information wins stage I.",
        "stage I, the rule", "always", RULE, SettingRow, **BY_RULE,
    ),
    _claim(
        "any-window",
        "Lags in the window that tell nothing about the next symbol are left out.",
        "the model", "the parents' set",
        f"with each window the parents win, and the distance to GIH ends ≤ {NEAR}",
        SettingRow, holds=becomes_gih, ours=distances, **_in_each(WINDOWS),
    ),
    _claim(
        "longer-chains-come-nearer",
        "The longer the chains of training, the nearer the model comes to GIH.",
        "the limit, our question", "an error that vanishes with L",
        "distance to GIH, on validation chains of the same length in which it finds a match, falls "
        "from each length to the next",
        SettingRow,
        holds=comes_nearer,
        ours=lambda rows: by_setting(
            sorted(rows, key=lambda row: LENGTHS.index(row.setting)), lambda row: row.distance
        ),
        of="seed", **_in_each(LENGTHS), origin="ours",
    ),
    _claim(
        "cross-entropy",
        "Descent on the cross-entropy ends at GIH.",
        "the model; the authors' program", "GIH",
        "open: −log(y + ε) of the answer y, or the cross-entropy of a softmax over y, as in the "
        f"program; the parents win, and the distance to GIH ends ≤ {NEAR}",
        SettingRow, holds=becomes_gih, ours=distances, **_under(LOSSES),
    ),
    _claim(
        "a-goes-on-growing",
        "a goes on growing to the end, towards attention that is infinitely sharp.",
        "stage III, our question; ε and the form of the loss are not given", "no end",
        f"at epoch {GROWN_AT} of stage III a grows by ≥ {STILL} per factor e of epochs; open: ε, "
        "and the cross-entropy of a softmax",
        SettingRow,
        holds=lambda row: row.slopes_of_a[GROWN_AT] >= STILL,
        ours=lambda rows: (
            f"{span((row.slopes_of_a[GROWN_AT] for row in rows), 3)}, "
            f"a = {span((row.a for row in rows), 2)}"
        ),
        **_under(EPSILONS, lambda row: GROWN_AT in row.slopes_of_a), origin="ours",
    ),
    _claim(
        "program-as-the-paper",
        "The authors' program and the text, which differ in details, lead to the same head.",
        "appendix B; the authors' program; the question is ours", "GIH",
        "with four differences alone, and with all of them, the parents win, and the distance to "
        f"GIH ends ≤ {NEAR}",
        SettingRow,
        holds=becomes_gih,
        ours=lambda rows: by_setting(rows, lambda row: row.distance),
        **_in_each(DETAILS), origin="ours",
    ),
)  # fmt: skip
