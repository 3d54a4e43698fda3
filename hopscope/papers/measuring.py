"""Measures the runs of a target once they are complete, beside other processes that do so too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.errors import OF_ONE_RUN, CircuitError, HopscopeError
from hopscope.papers.merge_rows import measured, merged
from hopscope.papers.results_folder import Results
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol, Table
from hopscope.papers.target import Target
from hopscope.store import RunFolder, Store

if TYPE_CHECKING:
    from hopscope.workers.progress import Progress


@dataclass
class Measuring:
    """Measures each run once it is complete, and keeps its rows before the next, beside what any
    other process has kept by then: a target may take days, and measuring a run minutes.
    """

    target: Target
    protocol: Protocol
    store: Store
    results: Results
    machine: str
    known: Table
    """All rows that this process measured, or found kept. They are not taken from the file alone:
    who completes the table removes it.
    """
    before: bytes | None = field(init=False)
    """The table that there was in the beginning, whose runs are measured anew."""
    troubles: dict[str, HopscopeError | None] = field(default_factory=dict)
    """What was wrong with each run that was looked at, if anything was."""

    def __post_init__(self) -> None:
        self.before = self.results.written(self.target.name)

    def look(self, progress: "Progress") -> None:
        """Measure what was reported as complete."""
        for name, report in progress.reports.items():
            if report.state == "complete":
                self.measure(RunFolder(self.store.root / name))

    def measure(self, folder: RunFolder) -> None:
        """Keep the rows of a run, or what was wrong with it; once, whichever process does it."""
        if folder.name in self.troubles:
            return
        self.troubles[folder.name] = None
        try:
            with self.results.held():
                self._look_there()
            if folder.name not in self.known.runs:
                rows = measured(self.target, self.protocol, folder)
                self.known = self._with({folder.name: rows}, self.known)
                self.save()
        except (CircuitError, *OF_ONE_RUN) as error:
            self.troubles[folder.name] = error

    def save(self) -> Path | None:
        """Write all that is known, as the target's table if it is of all its runs, else as a part
        of it; the file, or None if nothing is known of any run.
        """
        with self.results.held():
            self._look_there()
            if not self.known.missing:
                return self.results.save(self.known)
            return self.results.save_part(self.known) if self.known.runs else None

    def _look_there(self) -> None:
        """Learn what other processes have kept, or completed since the beginning."""
        there = [self.results.part(self.target.name, self.protocol)]
        if self.results.written(self.target.name) != self.before:
            table = self.results.table(self.target.name)
            there += [table] if table.protocol == self.protocol else []
        self.known = self._with({}, *there, self.known)

    def _with(self, new: Mapping[str, Sequence[Row]], *known: Table) -> Table:
        return merged(self.target, self.protocol, new, known, self.machine)
