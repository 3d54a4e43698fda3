"""What was measured of a paper: a small file of rows for each target, kept in the repository.

The first line says what the rows come from: target, protocol, version, machine, threads. Claims are
judged, and figures drawn, from these files alone.
"""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from hopscope import __version__
from hopscope.errors import ResultsError, ResultsMissing, ResultsUnreadable
from hopscope.store.files import read_bytes, write_bytes, writing

Protocol = Literal["full", "reduced", "smoke"]
PROTOCOLS: Mapping[Protocol, int] = {"smoke": 0, "reduced": 1, "full": 2}
"""The better a protocol, the higher."""

FORMAT = 1
"""Grows when old files cannot be read any more."""

Row = dict[str, Any]


class _Kept(Row):
    """A row from a file; what it lacks, another hopscope left out."""

    def __init__(self, values: Row, path: Path, anew: str) -> None:
        super().__init__(values)
        self._said = f"a row of {path} has no {{!r}}: another hopscope wrote it; {anew}"

    def __missing__(self, name: str) -> Any:
        raise ResultsUnreadable(self._said.format(name))


@dataclass(frozen=True)
class Table:
    """The rows of one target, and where they come from."""

    target: str
    protocol: Protocol
    rows: tuple[Row, ...]
    remark: str = ""
    """What the protocol left out, in words."""
    wanted: int = 0
    """How many runs the protocol has."""
    format: int = FORMAT
    hopscope: str = __version__
    machine: str = ""

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that the rows come from."""
        return tuple(dict.fromkeys(row["run"] for row in self.rows if "run" in row))

    @property
    def missing(self) -> int:
        """How many runs are not measured."""
        return max(0, self.wanted - len(self.runs))

    def to_bytes(self) -> bytes:
        names = (field.name for field in fields(self) if field.name != "rows")
        head = {name: getattr(self, name) for name in names}
        return "".join(json.dumps(line) + "\n" for line in (head, *self.rows)).encode()


class Results:
    """A folder of tables."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, target: str) -> Path:
        return self.root / f"{target}.jsonl"

    def has(self, target: str) -> bool:
        return self.path(target).is_file()

    def table(self, target: str) -> Table:
        """The rows of a target; if there are none, an error that says which command makes them."""
        path = self.path(target)
        if not path.is_file():
            raise ResultsMissing(
                f"{path} does not exist: `hopscope reproduce {target}` measures what it holds"
            )
        return _table(path, target)

    def readable(self, target: str) -> Table | None:
        """The rows of a target, if there are any, in a file that can be read."""
        try:
            return self.table(target)
        except ResultsError:
            return None

    def check(self, target: str, protocol: Protocol) -> None:
        """May a table of this protocol be written? One of a better protocol is not replaced."""
        path = self.path(target)
        known = protocol_of(path) if path.is_file() else protocol
        if PROTOCOLS[known] > PROTOCOLS[protocol]:
            raise ResultsUnreadable(
                f"{path} holds the {known} protocol, which {protocol} would replace: choose "
                "another folder with --results"
            )

    def save(self, table: Table) -> Path:
        """Write a table; what was kept of an unfinished one that is no better, goes."""
        self.check(table.target, table.protocol)
        path = self.path(table.target)
        write_bytes(path, table.to_bytes())
        for protocol, rank in PROTOCOLS.items():
            if rank <= PROTOCOLS[table.protocol]:
                part = self.part_path(table.target, protocol)
                with writing(part):
                    part.unlink(missing_ok=True)
        return path

    def part_path(self, target: str, protocol: Protocol) -> Path:
        return self.root / f"{target}.{protocol}.part.jsonl"

    def part(self, target: str, protocol: Protocol) -> Table:
        """The rows of the runs that were measured so far, while others are still to be trained."""
        path = self.part_path(target, protocol)
        if not path.is_file():
            return Table(target, protocol, ())
        found = _table(path, target)
        if found.protocol != protocol or not all("run" in row for row in found.rows):
            raise ResultsUnreadable(
                f"{path} is no part of the {protocol} protocol: remove it, and `hopscope reproduce "
                f"{target}` measures it anew"
            )
        return found

    def parts(self, target: str) -> list[Table]:
        """What there is of protocols that are not complete."""
        found = [self.part(target, protocol) for protocol in PROTOCOLS]
        return [table for table in found if table.rows]

    def save_part(self, table: Table) -> Path:
        """Keep the rows of some of the runs, beside the complete table that there may be."""
        path = self.part_path(table.target, table.protocol)
        write_bytes(path, table.to_bytes())
        return path


def protocol_of(path: Path) -> Protocol:
    """The protocol of a file of any format; the least, where it says nothing."""
    head = read_bytes(path).decode(errors="replace").partition("\n")[0]
    return next((known for known in PROTOCOLS if f'"{known}"' in head), "smoke")


def _table(path: Path, target: str) -> Table:
    anew = f"`hopscope reproduce {target}` measures it anew"
    try:
        lines = [json.loads(line) for line in read_bytes(path).decode().splitlines()]
    except (ValueError, RecursionError) as error:
        raise ResultsUnreadable(
            f"{path} is no table of results ({error}): remove it, and {anew}"
        ) from error
    head, *rows = lines or [None]
    if isinstance(head, dict) and head.get("format", FORMAT) != FORMAT:
        raise ResultsUnreadable(
            f"{path} has format {head['format']!r}, this hopscope ({__version__}) reads "
            f"{FORMAT}: {anew}"
        )
    if not _is_head(head, target) or not all(isinstance(row, dict) for row in rows):
        raise ResultsUnreadable(f"{path} is no table of results of {target}: remove it, and {anew}")
    return Table(**head, rows=tuple(_Kept(row, path, anew) for row in rows))


def _is_head(line: Any, target: str) -> bool:
    """Is it the first line of this target's table?"""
    known = {field.name for field in fields(Table)} - {"rows"}
    return (
        isinstance(line, dict)
        and {"target", "protocol", "format"} <= set(line) <= known
        and line["target"] == target
        and line["protocol"] in tuple(PROTOCOLS)
        and isinstance(line.get("wanted", 0), int)
        and all(isinstance(line.get(name, ""), str) for name in ("remark", "hopscope", "machine"))
    )


def machine(threads: int) -> str:
    """Where we are, in a few words."""
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {threads} threads, "
        f"Python {platform.python_version()}, torch {version('torch')}"
    )
