"""How a claim on transformer D is judged where the paper leaves open what D was trained on."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hopscope.papers.claim import Finding, Judge, share_drawn, verdict
from hopscope.papers.luck import luck_told
from hopscope.papers.musat.rows import LossRow, longest
from hopscope.papers.table import Table

Known = TypeVar("Known", bound=LossRow)
"""What has to be known of a model: losses and when its hops were learned, or its circuit, too."""


def by_reading(
    kind: type[Known], holds: Callable[[Known], bool], say: Callable[[Known], str], evidence: str
) -> Judge:
    """Does it hold for every model of all readings, of some, or of none?"""

    def judge(tables: Sequence[Table]) -> Finding:
        readings: dict[str, list[Known]] = {}
        models = longest(row for table in tables for row in table.of(kind))
        for row in sorted(models, key=lambda row: row.seed):
            readings.setdefault(_reading(row), []).append(row)
        said = "; ".join(
            clause
            for name, rows in readings.items()
            for clause in (
                f"{name}: {_how_many(list(map(holds, rows)))}",
                *(f"seed {row.seed}: {say(row)}" for row in rows),
            )
        )
        kept = [name for name, rows in readings.items() if all(map(holds, rows))]
        if 0 < len(kept) < len(readings):
            known = max(kept, key=lambda name: len(readings[name]))
            outcomes = [[(row.seed, holds(row)) for row in rows] for rows in readings.values()]
            words = f"{evidence}; holds with {known}; {luck_told(outcomes)}"
            return Finding(said, "under a reading", words)
        words = f"{evidence}; holds under {'every' if kept else 'no'} reading"
        return Finding(said, verdict(bool(kept)), words)

    return judge


def _how_many(held: Sequence[bool]) -> str:
    """For how many of a reading's models it holds."""
    return f"holds for {share_drawn(sum(held), len(held), 'models')}"


def _reading(row: LossRow) -> str:
    choices = [
        f"{row.examples:,} examples",
        "initial weights of 1/√inputs" * (row.init not in ("gpt2", None)),
        f"a code per {row.position}" * (row.position not in ("token", None)),
    ]
    *others, last = filter(None, choices)
    return " and ".join(filter(None, [", ".join(others), last]))
