"""Measured rows on disk: a JSONL file for each experiment; each line names its run.

    {"run": "retrieval-d3-l12h1-511f812baa", "hopscope": "0.1.0", "machine": "x86_64, 2 cores"}
    {"run": "retrieval-d3-l12h1-511f812baa", "seed": 0, "hops": 3, …}

The first line of a run has its version and machine; its rows follow. A measured run is never
trained again. To measure it again, delete its lines.
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from hopscope import __version__
from hopscope.errors import ResultsError, StoreError
from hopscope.papers.experiment import COMMAND, PROTOCOLS, PaperExperiment, Protocol
from hopscope.papers.row import ResultRow, read_row
from hopscope.store.files import read_bytes, write_bytes, writing
from hopscope.store.lock import locked

PATIENCE = 60.0
"""Seconds to wait for another process that writes to the same results."""
COMPUTED = "computed"
"""The name in place of a run, for rows that are computed without one."""

AnyRow = TypeVar("AnyRow", bound=ResultRow)


@dataclass(frozen=True)
class MeasuredRun:
    """The rows of one run, and the version and machine that measured them."""

    run: str
    hopscope: str
    machine: str
    rows: tuple[ResultRow, ...]


@dataclass(frozen=True)
class ResultsTable:
    """The measured runs of one protocol of an experiment, in the order of its recipes."""

    experiment: str
    protocol: Protocol
    runs: tuple[MeasuredRun, ...]
    missing: tuple[str, ...] = ()
    """The runs that are not measured."""
    remark: str = ""
    """What the protocol leaves out."""

    @property
    def rows(self) -> list[ResultRow]:
        return [row for run in self.runs for row in run.rows]

    @property
    def progress(self) -> str:
        """The number of measured runs out of all, as text."""
        return f"{len(self.runs)} of {len(self.runs) + len(self.missing)} runs"

    @property
    def names(self) -> list[str]:
        """The names of the measured runs; empty if rows are computed without runs."""
        return [run.run for run in self.runs if run.run != COMPUTED]

    @property
    def machines(self) -> list[str]:
        """The machines that measured the runs, each once."""
        return [*dict.fromkeys(run.machine for run in self.runs)]

    @property
    def versions(self) -> list[str]:
        """The versions of hopscope that measured the runs."""
        return [*dict.fromkeys(run.hopscope for run in self.runs)]

    def of(self, kind: type[AnyRow]) -> list[AnyRow]:
        """The rows of one kind."""
        return [row for row in self.rows if isinstance(row, kind)]


def machine(threads: int, gpu: str = "") -> str:
    """Return a description of this machine, with the name of its GPU if one is used."""
    return (
        f"{gpu}{', ' * bool(gpu)}{platform.machine()}, {os.cpu_count()} cores, {threads} threads, "
        f"Python {platform.python_version()}, torch {version('torch')}"
    )


def that_came_with_it() -> Path | None:
    """Return the folder of results shipped with this version, or None.

    It is inside an installed package, or next to the package in the repository.
    """
    package = Path(__file__).parent.parent
    repository = package.parent
    folders = [package / "results"]
    if (repository / "pyproject.toml").is_file():
        folders.append(repository / "results")
    return next((folder for folder in folders if folder.is_dir()), None)


class Results:
    """A folder with the measured rows of these experiments."""

    def __init__(self, root: Path, experiments: Mapping[str, PaperExperiment]) -> None:
        self.root = root
        self.experiments = experiments
        self._read: dict[str, tuple[tuple[int, int], dict[str, MeasuredRun]]] = {}

    def path(self, name: str) -> Path:
        """The file of an experiment."""
        return self.root / f"{name}.jsonl"

    def any(self) -> bool:
        """Return whether there are results of any experiment."""
        return any(self.path(name).is_file() for name in self.experiments)

    def measured(self, name: str) -> Mapping[str, MeasuredRun]:
        """Return every measured run of an experiment, by name; raises ResultsError."""
        path = self.path(name)
        if not path.is_file():
            return {}
        stamp = path.stat().st_mtime_ns, path.stat().st_size
        if name not in self._read or self._read[name][0] != stamp:
            self._read[name] = stamp, self._parsed(name)
        return self._read[name][1]

    def _parsed(self, name: str) -> dict[str, MeasuredRun]:
        kinds = self.experiments[name].rows
        heads: dict[str, MeasuredRun] = {}
        rows: dict[str, list[ResultRow]] = {}
        for number, line in enumerate(self._lines(name), start=1):
            try:
                if set(line) == {"run", "hopscope", "machine"}:
                    heads[line["run"]] = MeasuredRun(**line, rows=())
                    rows[line["run"]] = []
                else:
                    _add(rows[line["run"]], read_row(kinds, line))
            except (ResultsError, KeyError, TypeError) as error:
                said = error if isinstance(error, ResultsError) else "it belongs to no run"
                raise ResultsError(
                    f"line {number} of {self.path(name)} cannot be read ({said}): remove the lines "
                    f"of its run, and `{COMMAND} {name}` measures it again"
                ) from error
        return {
            run: MeasuredRun(run, head.hopscope, head.machine, tuple(rows[run]))
            for run, head in heads.items()
        }

    def _lines(self, name: str) -> list[Any]:
        path = self.path(name)
        if not path.is_file():
            return []
        try:
            # Not splitlines: a text may contain other line breaks, such as U+2028.
            return [json.loads(line) for line in read_bytes(path).decode().split("\n") if line]
        except StoreError as error:
            raise ResultsError(str(error)) from error
        except (ValueError, RecursionError) as error:
            raise ResultsError(
                f"{path} is not a file of results ({error}): remove it, and `{COMMAND} {name}` "
                "measures its runs again"
            ) from error

    def seconds(self, name: str) -> dict[str, tuple[str, float]]:
        """Return the machine and the seconds of each measured run; empty if unreadable."""
        with suppress(ResultsError):
            return {
                run.run: (run.machine, seconds)
                for run in self.measured(name).values()
                for row in run.rows
                if (seconds := getattr(row, "seconds", None)) is not None
            }
        return {}

    def table(self, name: str, protocol: Protocol) -> ResultsTable:
        """Return the table of a protocol of an experiment."""
        experiment, known = self.experiments[name], self.measured(name)
        wanted = [*experiment.runs(protocol)] if experiment.recipes else [COMPUTED]
        return ResultsTable(
            name,
            protocol,
            tuple(known[run] for run in wanted if run in known),
            tuple(run for run in wanted if run not in known),
            experiment.reduced if protocol == "reduced" else "",
        )

    def tables(self, name: str) -> list[ResultsTable]:
        """Return the table of each protocol of an experiment."""
        protocols = [each for each in PROTOCOLS if each in self.experiments[name].recipes]
        return [self.table(name, each) for each in protocols or PROTOCOLS[:1]]

    def shown(self, name: str) -> ResultsTable | None:
        """Return the table to draw: a complete one, otherwise the one with most runs.

        None if nothing is measured or readable.
        """
        with suppress(ResultsError):
            found = [table for table in self.tables(name) if table.runs]
            return max(found, key=lambda each: (not each.missing, len(each.runs)), default=None)
        return None

    def keep(self, name: str, run: str, rows: Sequence[ResultRow], machine: str) -> None:
        """Append the rows of a run to the file of its experiment, unless it has them already."""
        path = self.path(name)
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        with locked(self.root, f"another process writes to {self.root}: wait for it", PATIENCE):
            before = read_bytes(path) if path.is_file() else b""
            if run not in self.measured(name):
                write_bytes(path, before + lines_of(run, rows, machine))


def lines_of(run: str, rows: Sequence[ResultRow], machine: str) -> bytes:
    """Return the lines of a run in a file of results: version and machine, then its rows."""
    head = json.dumps({"run": run, "hopscope": __version__, "machine": machine})
    named = [row.model_copy(update={"run": run}).to_json() for row in rows]
    return "".join(f"{line}\n" for line in (head, *named)).encode()


def _add(rows: list[ResultRow], row: ResultRow) -> None:
    if row in rows:
        raise ResultsError("its run has this row already")
    rows.append(row)
