"""Measured rows on disk: a JSONL file for each experiment, whose lines name the run they are of.

    {"run": "retrieval-d3-l12h1-511f812baa", "hopscope": "0.1.0", "machine": "x86_64, 2 cores"}
    {"run": "retrieval-d3-l12h1-511f812baa", "seed": 0, "hops": 3, …}

The first line of a run says where it was measured; its rows follow. A run that was measured is
never trained again. To measure it anew, delete its lines.
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
from hopscope.papers.row import Row, read_row
from hopscope.store.files import read_bytes, write_bytes, writing
from hopscope.store.lock import locked

PATIENCE = 60.0
"""Seconds for which one process waits for another that writes to the same results."""
COMPUTED = "computed"
"""What stands for the run of rows that need none."""

AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True)
class Measured:
    """The rows of one run, and where they were measured."""

    run: str
    hopscope: str
    machine: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class ResultsTable:
    """What is measured of one protocol of an experiment, in the order of its recipes."""

    experiment: str
    protocol: Protocol
    runs: tuple[Measured, ...]
    missing: tuple[str, ...] = ()
    """The runs that are not measured."""
    remark: str = ""
    """What the protocol leaves out."""

    @property
    def rows(self) -> list[Row]:
        return [row for run in self.runs for row in run.rows]

    @property
    def names(self) -> list[str]:
        """The runs that were measured; none where rows are computed."""
        return [run.run for run in self.runs if run.run != COMPUTED]

    @property
    def machines(self) -> list[str]:
        """Where its runs were measured, each place once."""
        return [*dict.fromkeys(run.machine for run in self.runs)]

    @property
    def versions(self) -> list[str]:
        """The versions of hopscope that measured them."""
        return [*dict.fromkeys(run.hopscope for run in self.runs)]

    def of(self, kind: type[AnyRow]) -> list[AnyRow]:
        """The rows of one kind."""
        return [row for row in self.rows if isinstance(row, kind)]


def machine(threads: int, gpu: str = "") -> str:
    """Where we are, in a few words; with the name of a GPU, if one computes."""
    return (
        f"{gpu}{', ' * bool(gpu)}{platform.machine()}, {os.cpu_count()} cores, {threads} threads, "
        f"Python {platform.python_version()}, torch {version('torch')}"
    )


def that_came_with_it() -> Path | None:
    """The folder of what was measured for this version: inside an installed package, beside the
    package in its repository.
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
        self._read: dict[str, tuple[tuple[int, int], dict[str, Measured]]] = {}

    def path(self, name: str) -> Path:
        """The file of an experiment."""
        return self.root / f"{name}.jsonl"

    def any(self) -> bool:
        """Is anything measured?"""
        return any(self.path(name).is_file() for name in self.experiments)

    def measured(self, name: str) -> Mapping[str, Measured]:
        """Every run of an experiment that is measured, by its name."""
        path = self.path(name)
        if not path.is_file():
            return {}
        stamp = path.stat().st_mtime_ns, path.stat().st_size
        if name not in self._read or self._read[name][0] != stamp:
            self._read[name] = stamp, self._parsed(name)
        return self._read[name][1]

    def _parsed(self, name: str) -> dict[str, Measured]:
        kinds = self.experiments[name].rows
        heads: dict[str, Measured] = {}
        rows: dict[str, list[Row]] = {}
        for number, line in enumerate(self._lines(name), start=1):
            try:
                if set(line) == {"run", "hopscope", "machine"}:
                    heads[line["run"]] = Measured(**line, rows=())
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
            run: Measured(run, head.hopscope, head.machine, tuple(rows[run]))
            for run, head in heads.items()
        }

    def _lines(self, name: str) -> list[Any]:
        path = self.path(name)
        if not path.is_file():
            return []
        try:
            # Not splitlines: a text may hold other ends of lines, as U+2028.
            return [json.loads(line) for line in read_bytes(path).decode().split("\n") if line]
        except StoreError as error:
            raise ResultsError(str(error)) from error
        except (ValueError, RecursionError) as error:
            raise ResultsError(
                f"{path} is not a file of results ({error}): remove it, and `{COMMAND} {name}` "
                "measures its runs again"
            ) from error

    def seconds(self, name: str) -> dict[str, tuple[str, float]]:
        """Where each measured run was trained and for how long; of a file that cannot be read,
        nothing.
        """
        with suppress(ResultsError):
            return {
                run.run: (run.machine, seconds)
                for run in self.measured(name).values()
                for row in run.rows
                if (seconds := getattr(row, "seconds", None)) is not None
            }
        return {}

    def table(self, name: str, protocol: Protocol) -> ResultsTable:
        """What is measured of a protocol of an experiment."""
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
        """The table of each protocol that an experiment has, of runs that are measured."""
        protocols = [each for each in PROTOCOLS if each in self.experiments[name].recipes]
        return [self.table(name, each) for each in protocols or PROTOCOLS[:1]]

    def shown(self, name: str) -> ResultsTable | None:
        """What is drawn of an experiment: the table that is complete, or else has most runs; None
        if nothing of it is measured, or can be read.
        """
        with suppress(ResultsError):
            found = [table for table in self.tables(name) if table.runs]
            return max(found, key=lambda each: (not each.missing, len(each.runs)), default=None)
        return None

    def keep(self, name: str, run: str, rows: Sequence[Row], machine: str) -> None:
        """Append the rows of a run to the file of its experiment, unless another process has."""
        path = self.path(name)
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        with locked(self.root, f"another process writes to {self.root}: wait for it", PATIENCE):
            before = read_bytes(path) if path.is_file() else b""
            if run not in self.measured(name):
                write_bytes(path, before + lines_of(run, rows, machine))


def lines_of(run: str, rows: Sequence[Row], machine: str) -> bytes:
    """The lines of a file of results that hold a run: where it was measured, then its rows."""
    head = json.dumps({"run": run, "hopscope": __version__, "machine": machine})
    named = [row.model_copy(update={"run": run}).to_json() for row in rows]
    return "".join(f"{line}\n" for line in (head, *named)).encode()


def _add(rows: list[Row], row: Row) -> None:
    if row in rows:
        raise ResultsError("its run has this row already")
    rows.append(row)
