"""Which claims about transformers A, B and C hold under which reading of the paper.

Rows of one reading are judged as those of figure 5 are: each model alone, where that makes sense,
and all of them together.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hopscope.papers.claim import Finding, Judge, share
from hopscope.papers.cost import training_flop
from hopscope.papers.luck import luck_told
from hopscope.papers.musat.readings import PaperReading, reading_of
from hopscope.papers.musat.rows import CircuitRow, ReadingRow
from hopscope.papers.table import Table

FEW = 3
"""Readings under which a claim holds, of which a finding names no more."""
ENOUGH = 3
"""Models under one reading, from which on it counts: as many as the paper has."""


@dataclass(frozen=True)
class Tried:
    """The models that were trained under one reading for so many steps."""

    reading: str
    steps: int
    target: str
    rows: tuple[CircuitRow, ...]

    @property
    def of_the_paper(self) -> bool:
        """Can the paper be read so? Facts that stand shuffled are a trial of ours."""
        return reading_of(self.reading).order == PaperReading().order

    def holds(self, judge: Judge) -> bool:
        """Does a claim hold for these models, all together?"""
        return self._says(judge, self.rows)

    def outcome(self, judge: Judge) -> list[tuple[int, bool]]:
        """The seed of each, and whether it holds: for all, if it does for all together, else for
        those that are judged alone. (Whether models differ, one alone cannot tell.)
        """
        together = self.holds(judge)
        return [(row.seed, together or self.alone(judge, row)) for row in self.rows]

    def held(self, judge: Judge) -> int:
        """For how many of them it holds."""
        return sum(holds for _, holds in self.outcome(judge))

    def alone(self, judge: Judge, row: CircuitRow) -> bool:
        """Does a claim hold for one of these models?"""
        return self._says(judge, (row,))

    @property
    def flop(self) -> float:
        """What one of the models cost to train."""
        row = self.rows[0]
        if isinstance(row, ReadingRow):
            return row.flop
        return training_flop(reading_of(self.reading).experiment(row.seed, row.steps))

    @property
    def heads(self) -> list[tuple[int, int]]:
        """Of each model, how many heads of its circuit have a path, and how many have none."""
        return [(len(row.useful), len(row.needed) - len(row.useful)) for row in self.rows]

    def _says(self, judge: Judge, rows: tuple[CircuitRow, ...]) -> bool:
        return judge([Table(self.target, "full", rows)]).verdict == "reproduced"


def tried(tables: Sequence[Table]) -> list[Tried]:
    """All readings that there are models of, in the order in which they were tried. Rows that do
    not say their reading are of the paper as we take it.
    """
    found: dict[tuple[str, int], Tried] = {}
    for table in tables:
        for row in table.of(CircuitRow):
            reading = row.reading if isinstance(row, ReadingRow) else PaperReading().name
            key = (reading, row.steps)
            known = found.get(key, Tried(*key, table.target, ()))
            found[key] = replace(known, rows=(*known.rows, row))
    return list(found.values())


def longest_of_each(found: Sequence[Tried]) -> list[Tried]:
    """Every reading once: where its models were trained for several lengths, the longest, which
    comes nearest to the paper's.
    """
    best: dict[str, Tried] = {}
    for each in found:
        if each.steps >= best.get(each.reading, each).steps:
            best[each.reading] = each
    return list(best.values())


def comparable(found: Sequence[Tried], steps: int) -> list[Tried]:
    """Readings of the paper whose models were trained for so many steps: to have learned for longer
    is a difference of its own.
    """
    return [each for each in found if each.of_the_paper and each.steps == steps]


def usual_steps(found: Sequence[Tried]) -> int:
    """For how many steps the models of most readings were trained; of equals, the largest."""
    counts = Counter(each.steps for each in found if each.of_the_paper)
    return max(counts, key=lambda steps: (counts[steps], steps), default=0)


def asked_of_one(found: Sequence[Tried], judge: Judge) -> bool:
    """Can a claim hold for one model alone? (Whether models differ cannot.)"""
    alone = any(each.alone(judge, row) for each in found for row in each.rows)
    return alone or not any(each.holds(judge) for each in found)


def nearest(found: Sequence[Tried], judges: Sequence[Judge]) -> tuple[Tried, CircuitRow]:
    """The one model for which most claims hold, of all that can be read into the paper; of equals,
    the one with the lowest loss.
    """
    every = [(one, row) for one in found if one.of_the_paper for row in one.rows]

    def distance(pair: tuple[Tried, CircuitRow]) -> tuple[int, float]:
        one, row = pair
        return -sum(one.alone(judge, row) for judge in judges), row.loss

    return min(every, key=distance)


def under_readings(judge: Judge) -> Judge:
    """The same judge, which asks the tables behind the first under which other readings of the
    paper a claim holds, and most of all where it does not as we take the paper.
    """

    def judged(tables: Sequence[Table]) -> Finding:
        found = judge(tables[:1])
        if found.verdict not in ("reproduced", "not reproduced"):
            return found
        others = [
            each
            for each in tried(tables[1:])
            if each.of_the_paper and each.reading != PaperReading().name
        ]
        enough = longest_of_each([each for each in others if len(each.rows) >= ENOUGH])
        holding = [each for each in enough if each.holds(judge)]
        if not enough:
            return found
        how_many = (
            f"{share(len(holding), len(enough))} other readings tried with {ENOUGH} seeds each "
            f"({_targets(enough)})"
        )
        if found.verdict == "reproduced":
            words = f"it holds as we take the paper ({PaperReading().name})"
            return _with(found, f"{words}; it holds with every seed under {how_many}")
        words = (
            f"it does not hold as we take the paper ({PaperReading().name}); it holds with every "
            f"seed under {how_many}"
        )
        if not holding:
            return _with(found, words)
        first = holding[0]
        words += ": " + " / ".join(
            f"{each.reading} ({each.steps:,} steps)" for each in holding[:FEW]
        )
        if len(holding) > FEW:
            words += f" / {len(holding) - FEW} more"
        every = tried(tables)
        alike = comparable(every, first.steps)
        if len(alike) > 1 and asked_of_one(every, judge):
            length = f"{len(alike)} readings, {first.steps:,} steps"
            words += f"; {luck_told([each.outcome(judge) for each in alike])} ({length})"
        return replace(_with(found, words), verdict="under a reading")

    return judged


def _with(found: Finding, words: str) -> Finding:
    return replace(found, evidence=f"{found.evidence}; {words}")


def _targets(found: Sequence[Tried]) -> str:
    return ", ".join(dict.fromkeys(each.target for each in found))
