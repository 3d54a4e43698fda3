"""A claim of a paper that can be measured, and the verdict on it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hopscope.display import Displayed
from hopscope.errors import ResultsError
from hopscope.papers.cost import sample_and_cost
from hopscope.papers.experiment import COMMAND
from hopscope.papers.judge import Finding, Judge
from hopscope.papers.results import Results, ResultsTable
from hopscope.papers.row import ResultRow


@dataclass(frozen=True)
class Reason:
    """Why a claim does not hold, with an experiment that shows it."""

    says: str
    command: str
    """The command of that experiment."""


@dataclass(frozen=True)
class Claim(Displayed):
    """A paper's claim in our words, and how it is compared with our measurements."""

    id: str
    """The name of the claim as paper/name, e.g. musat/nonic-above-0.7."""
    says: str
    where: str
    """The section, figure or appendix of the paper that makes the claim."""
    paper: str
    """The value that the paper gives, as text."""
    how: str
    """How we measure it, tolerance included."""
    needs: tuple[str, ...]
    """The experiments that must be measured, in either protocol."""
    judge: Judge[Any]
    """Called with the rows of all the claim's experiments."""
    only_full: bool = False
    """Less training than the paper's can refute the claim but not confirm it (e.g. "never")."""
    beside: tuple[str, ...] = ()
    """Optional experiments, whose rows count too if they are measured."""
    origin: Literal["paper", "ours"] = "paper"
    """The origin of the claim; our own claims are counted separately."""
    reason: Reason | None = None
    """Why the claim is not reproduced, if it is not."""

    def __repr__(self) -> str:
        return f"Claim({self.id!r}, {self.says!r})"

    @property
    def sources(self) -> tuple[str, ...]:
        """All experiments from which the claim is judged."""
        return (*self.needs, *self.beside)

    def why(self, found: Finding) -> Reason | None:
        """Return why the claim does not hold; None unless the verdict is "not reproduced"."""
        return self.reason if found.verdict == "not reproduced" else None

    def finding(self, results: Results) -> Finding:
        """Return the verdict from a folder of results.

        "Not measured" comes with the command for missing runs, or with why a file is unreadable.
        """
        notes, tables = [], []
        for name in self.sources:
            try:
                tables += results.tables(name)
            except ResultsError as error:
                if name in self.needs:
                    return Finding("not measured", evidence=str(error))
                notes.append(f"{name} cannot be read")
        whole = {table.experiment for table in tables if table.runs and not table.missing}
        if missing := [name for name in self.needs if name not in whole]:
            return Finding("not measured", evidence=_what_is_left(missing, tables))
        of_each = _new_rows(tables)
        rows = [row for own in of_each for row in own]
        found, judged = self.judge(rows), {id(row) for row in self.judge.counted(rows)}
        pairs = zip(tables, of_each, strict=True)
        counted = [table for table, own in pairs if judged & {*map(id, own)}]
        less = [table for table in counted if table.protocol == "reduced"]
        if self.only_full and less and found.verdict == "reproduced":
            said = " / ".join(f"{table.experiment}, {table.remark}" for table in less)
            notes.append(f"less training than the paper's cannot confirm it: {said}")
            found = replace(found, verdict="at smaller scale")
        cost = [sample_and_cost(table, results.experiments[table.experiment]) for table in counted]
        return replace(found, notes=tuple(notes), cost=tuple(filter(None, cost)))


def _new_rows(tables: Sequence[ResultsTable]) -> list[list[ResultRow]]:
    """Return the rows of each table, without runs that an earlier table also has."""
    found: list[list[ResultRow]] = []
    known: set[tuple[str, str]] = set()
    for table in tables:
        runs = {(table.experiment, run.run): run.rows for run in table.runs}
        found.append([row for run, rows in runs.items() if run not in known for row in rows])
        known |= runs.keys()
    return found


def _what_is_left(missing: Sequence[str], tables: Sequence[ResultsTable]) -> str:
    """Return the command that measures each missing experiment, and its progress."""
    said = []
    for name in missing:
        begun = [
            f"{table.protocol}: {table.progress}"
            for table in tables
            if table.experiment == name and table.runs
        ]
        said.append(f"`{COMMAND} {name}`" + f" ({', '.join(begun)})" * bool(begun))
    return ", ".join(said)
