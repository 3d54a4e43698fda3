"""What Chen et al. say that takes more than their own setting: judged over the seeds of each.

Other stages, parents, windows and lengths, and the details that the paper leaves open or that its
authors' program does otherwise.
"""

from hopscope.papers.chen.judges import NEAR, distances
from hopscope.papers.chen.setting_judges import (
    PAPER,
    SAME_LOSS,
    becomes_gih,
    distance,
    every,
    falls,
    readings,
    same_place,
    the_rule,
)
from hopscope.papers.claim import Claim, span

STILL = 0.1
"""Growth of a per factor e of epochs that counts as growing."""
GROWN_AT = "1000"
"""Epoch of the last stage at which a should still grow."""

LENGTHS = ("length 10", "length 20", "length 50", PAPER, "length 200", "length 400", "length 1000")
EPSILONS = {
    "ε = 1e-6": PAPER,
    "ε = 0.01": "epsilon 0.01",
    "softmax over y": "cross-entropy of a softmax",
}
DETAILS = {
    "text": PAPER,
    "even start": "uniform start",
    "unit copies": "unit copies",
    "the empty set": "the empty set, too",
    "other weights": "other weights 0.1",
    "program": "the authors' program",
}

SETTINGS = ("chen/settings",)


def _ends_there(setting: str, says: str) -> Claim:
    return Claim(
        id=f"chen/{setting.lower().replace(' ', '-')}",
        says=says,
        where="appendix B",
        paper="GIH",
        how=f"the same lags, validation loss within {SAME_LOSS:.0%}, distance to GIH ≤ {NEAR}",
        targets=SETTINGS,
        judge=same_place(setting),
    )


IN_SETTINGS: tuple[Claim, ...] = (
    _ends_there(
        "C and W together",
        "Training selector and heads together, and then a, ends at the same place.",
    ),
    _ends_there("all at once", "Training everything at once ends at the same place."),
    Claim(
        id="chen/information-names-the-winner",
        says="The set with the largest modified χ² mutual information wins stage I.",
        where="stage I, the rule",
        paper="always",
        how="the rule's set (exact, mean over 300 tables) is the chosen one in every setting; "
        "reading: heads begin sharp, with 0.999 of their attention at one lag instead of 0.91",
        targets=SETTINGS,
        judge=the_rule,
    ),
    Claim(
        id="chen/any-window",
        says="Lags in the window that tell nothing about the next symbol are left out.",
        where="the model",
        paper="the parents' set",
        how=f"with each window the parents win, and the distance to GIH ends ≤ {NEAR}",
        targets=SETTINGS,
        judge=every(("window 2", PAPER, "window 4", "window 6"), becomes_gih, distances),
    ),
    Claim(
        id="chen/longer-chains-come-nearer",
        says="The longer the chains of training, the nearer the model comes to GIH.",
        where="the limit, our reading",
        paper="an error that vanishes with L",
        how="distance to GIH falls from each length to the next",
        targets=SETTINGS,
        judge=falls(LENGTHS, lambda row: row.distance, 4),
    ),
    Claim(
        id="chen/cross-entropy",
        says="Descent on the cross-entropy ends at GIH.",
        where="the model; the authors' program",
        paper="GIH",
        how="readings: −log(y + ε) of the answer y, and the cross-entropy of a softmax over y, as "
        f"in the program; under each the parents win, and the distance to GIH ends ≤ {NEAR}",
        targets=SETTINGS,
        judge=readings(
            {"−log(y + ε)": PAPER, "softmax over y": "cross-entropy of a softmax"},
            becomes_gih,
            distance,
        ),
    ),
    Claim(
        id="chen/a-goes-on-growing",
        says="a goes on growing to the end, towards attention that is infinitely sharp.",
        where="stage III, our reading; ε and the form of the loss are not given",
        paper="no end",
        how=f"at epoch {GROWN_AT} of stage III a grows by ≥ {STILL} per factor e of epochs; "
        "readings: ε, and the cross-entropy of a softmax",
        targets=SETTINGS,
        judge=readings(
            EPSILONS,
            lambda row: row.slopes_of_a[GROWN_AT] >= STILL,
            lambda own: (
                f"{span((row.slopes_of_a[GROWN_AT] for row in own), 3)}, "
                f"a = {span((row.a for row in own), 2)}"
            ),
        ),
    ),
    Claim(
        id="chen/program-as-the-paper",
        says="The authors' program and the text, which differ in details, lead to the same head.",
        where="appendix B; the authors' program; the question is ours",
        paper="GIH",
        how="readings: four differences alone, and all of them; under each the parents win, and "
        f"the distance to GIH ends ≤ {NEAR}",
        targets=SETTINGS,
        judge=readings(DETAILS, becomes_gih, distance),
    ),
)
