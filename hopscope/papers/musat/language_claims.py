"""What Musat (ICLR 2025) says of language models, and how it is judged."""

from collections.abc import Sequence

from hopscope.papers.claim import Claim, Finding, share
from hopscope.papers.musat.rows import AnswerRow
from hopscope.papers.table import Table

ALMOST_PERFECT = 0.9
"""An accuracy that counts as "almost perfectly"."""
LARGER = "the paper's models are larger by far, so that these cannot decide it"
"""So a model of ours that fails says nothing of them, and one that does not says more than they."""


def solve(tables: Sequence[Table]) -> Finding:
    """Judge whether a model answers equations of every number of hops with an accuracy of at least
    ALMOST_PERFECT; then it is "under a reading", since the models are smaller than the paper's, and
    "not measured" if none does.
    """
    rows = [row for row in tables[0].of(AnswerRow) if row.kind.startswith("equations")]
    if not rows:
        return Finding("–", "not measured", "no equations were asked")
    said, able = [], []
    for name, own in _by_model(rows).items():
        right, best = [row.accuracy for row in own], [row.best for row in own]
        said.append(
            f"{name} {min(right):.2f} … {max(right):.2f} (likeliest answer {min(best):.2f} … "
            f"{max(best):.2f})"
        )
        able += [name] * (min(right) >= ALMOST_PERFECT)
    return Finding(
        "; ".join(said), "under a reading" if able else "not measured",
        "equations of 1 to 5 hops, probability of the right answer among the acceptable ones; "
        f"at least {ALMOST_PERFECT} at every D by {', '.join(able) or 'none'}; {LARGER}",
    )  # fmt: skip


def _by_model(rows: Sequence[AnswerRow]) -> dict[str, list[AnswerRow]]:
    """What each model was asked."""
    found: dict[str, list[AnswerRow]] = {}
    for row in rows:
        found.setdefault(row.asked, []).append(row)
    return found


def above_guessing(tables: Sequence[Table]) -> Finding:
    """Judge whether a model answers every kind of question better than by guessing; then it is
    "under a reading", and "not measured" if none does, as above.
    """
    rows = tables[0].of(AnswerRow)
    above = {
        name: [row.interval[0] > row.guessing for row in own]
        for name, own in sorted(_by_model(rows).items())
    }
    said = [f"{name} {share(sum(kinds), len(kinds))}" for name, kinds in above.items()]
    return Finding(
        "; ".join(said),
        "under a reading" if any(map(all, above.values())) else "not measured",
        "kinds of questions answered better than by guessing (the lower end of the 95 % interval); "
        f"asked of each kind: {_asked(rows)}; {LARGER}",
    )  # fmt: skip


def _asked(rows: Sequence[AnswerRow]) -> str:
    """How many questions of a kind each model was asked."""
    return ", ".join(
        f"{name} {' or '.join(map(str, sorted({row.count for row in own})))}"
        for name, own in sorted(_by_model(rows).items())
    )


CLAIMS = (
    Claim(
        "musat/llm-solve", "Large language models solve up to five hops almost perfectly.",
        "§4, figure 2", "almost 1", "accuracy by the paper's protocol, D = 1 … 5",
        ("musat/fig2",), solve,
    ),
    Claim(
        "musat/llm-all-formulations", "Large language models do well at all five formulations.",
        "§4, figure 2",
        "great performance on each", "lower end of the 95 % interval above guessing",
        ("musat/fig2",), above_guessing,
    ),
)  # fmt: skip
