"""A table: the rows that were measured for one target, and where they come from.

On disk it is a file of lines: the first says target, protocol, version and machine, each other
one is a row. Claims are judged, and figures drawn, from tables alone.
"""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Literal, TypeVar

from hopscope import __version__
from hopscope.papers.row import Row

Protocol = Literal["full", "reduced", "smoke"]
PROTOCOLS: Mapping[Protocol, int] = {"smoke": 0, "reduced": 1, "full": 2}
"""How much of the paper's experiment each protocol runs; more is higher."""

FORMAT = 1
"""The version of the file format; it grows when files of before cannot be read any more."""

AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True)
class Table:
    """The rows of one target, and where they come from."""

    target: str
    protocol: Protocol
    rows: tuple[Row, ...]
    remark: str = ""
    """What the protocol left out, in words."""
    wanted: int | None = None
    """How many runs the protocol has; unset in tables that are older than this field."""
    format: int = FORMAT
    hopscope: str = __version__
    machine: str = ""
    without_rows: tuple[str, ...] = ()
    """The runs that were measured, and of which there is nothing to say in a row."""

    def of(self, kind: type[AnyRow]) -> list[AnyRow]:
        """The rows of one kind."""
        return [row for row in self.rows if isinstance(row, kind)]

    @property
    def tiny(self) -> bool:
        """Are its models tiny ones, from which nothing can be judged?"""
        return self.protocol == "smoke"

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that were measured: those that the rows come from, and those without rows."""
        named = (row.run for row in self.rows if row.run is not None)
        return tuple(dict.fromkeys([*named, *self.without_rows]))

    @property
    def missing(self) -> int:
        """How many runs are not measured."""
        return max(0, (self.wanted or 0) - len(self.runs))

    def to_bytes(self) -> bytes:
        """The table as JSON lines: first what holds for all rows, then the rows."""
        head = {field.name: getattr(self, field.name) for field in fields(self)}
        del head["rows"]
        if self.wanted is None:
            del head["wanted"]
        if not self.without_rows:
            del head["without_rows"]
        lines = (json.dumps(head), *(row.to_json() for row in self.rows))
        return "".join(line + "\n" for line in lines).encode()


def machine(threads: int, gpu: str = "") -> str:
    """Where we are, in a few words; with the name of a GPU, if it is that which computes."""
    return (
        f"{gpu}{', ' * bool(gpu)}{platform.machine()}, {os.cpu_count()} cores, {threads} threads, "
        f"Python {platform.python_version()}, torch {version('torch')}"
    )
