"""The claims of Musat (ICLR 2025) about language models.

A claim about large models is decided by large models, if any was asked. Smaller models can confirm
it, but not refute it: the verdict is then *needs larger models*. A question without an acceptable
answer counts as not solved. The paper leaves open whether the answer's first words are given.
"""

from collections.abc import Callable

from hopscope.papers.claim import Claim
from hopscope.papers.judge import Judge, group, out_of, several, span
from hopscope.papers.musat.rows import AnswerRow

ALMOST_PERFECT = 0.9
"""An accuracy that counts as "almost perfectly"."""
LARGE = 7_000_000_000
"""Least number of parameters of a large model (our choice; the paper names no sizes). A model of
unknown size, such as at an endpoint, counts as large."""
AS_IN_THE_PAPER = "as in the paper"


def is_large(row: AnswerRow) -> bool:
    return row.parameters is None or row.parameters >= LARGE


def above_chance(row: AnswerRow) -> bool:
    """Return whether a kind of question is answered better than at chance."""
    return row.interval is not None and row.interval[0] * row.answered > row.chance


def _accuracies(rows: list[AnswerRow]) -> str:
    return "; ".join(
        f"{model} {span((row.accuracy for row in own if row.accuracy is not None), 2)} (likeliest "
        f"answer {span((row.best for row in own), 2)}){_silent(own)}"
        for model, own in group(rows, lambda row: row.model).items()
    )


def _above(rows: list[AnswerRow]) -> str:
    return "; ".join(
        f"{model} {out_of(sum(map(above_chance, own)), len(own))} kinds, of "
        f"{min(row.count for row in own)} questions each{_silent(own)}"
        for model, own in sorted(group(rows, lambda row: row.model).items())
    )


def _silent(rows: list[AnswerRow]) -> str:
    """Return as text how many questions of which kinds have no acceptable answer."""
    kinds = [
        f"{out_of(row.count - row.accuracy_over, row.count)} {row.kind}"
        for row in rows
        if row.answered < 1
    ]
    return f", no acceptable answer to {several(kinds)}" if kinds else ""


def _all_small(rows: list[AnswerRow]) -> str:
    if any(map(is_large, rows)):
        return ""
    return f"all models that were asked are below {LARGE / 1e9:.0f} billion parameters"


def _judge(
    holds: Callable[[AnswerRow], bool],
    ours: Callable[[list[AnswerRow]], str],
    among: Callable[[AnswerRow], bool] = lambda _: True,
) -> Judge[AnswerRow]:
    """Make a judge of a claim that must hold for every model and kind of question.

    If there are large models, only these count.
    """
    return Judge(
        AnswerRow, holds, ours, among=among,
        once=lambda rows: [row for row in rows if is_large(row)] or rows,
        variant=lambda row: (
            "answer begun" if row.kind.endswith("opened") else AS_IN_THE_PAPER
        ),
        first=AS_IN_THE_PAPER, who=lambda row: row.model,
        no_seeds="published models, which have no seeds", too_small=_all_small,
    )  # fmt: skip


CLAIMS = (
    Claim(
        "musat/lm-solve", "Large language models solve up to five hops almost perfectly.",
        "§4, figure 2", "almost 1", "equations of 1 to 5 hops: probability of the right answer "
        f"among the acceptable ones, at least {ALMOST_PERFECT} at every D", ("musat/fig2",),
        _judge(
            lambda row: (row.accuracy or 0) * row.answered >= ALMOST_PERFECT, _accuracies,
            lambda row: row.kind.startswith("equations"),
        ),
    ),
    Claim(
        "musat/lm-all-formulations", "Large language models do well at all five formulations.",
        "§4, figure 2", "great performance on each",
        "kinds of questions answered better than at chance: the lower end of the 95 % interval",
        ("musat/fig2",), _judge(above_chance, _above),
    ),
)  # fmt: skip
