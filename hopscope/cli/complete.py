"""`hopscope complete WORDS`: what the last word may become. The completion scripts call it, at
every press of the key, and hand it a table of all arguments; so it is light.

The table has a line for each command, or several of the same arguments with tabs between them, and
below it a line for each argument, which begins with a space: flags, value, + if it takes any number
of values, and choices, with tabs between them.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hopscope.cli.output import say

GALLERY = Path(__file__).parent.parent / "gallery"


class Row(NamedTuple):
    """One argument of a command."""

    flags: tuple[str, ...]
    value: str
    many: bool
    choices: tuple[str, ...]


Table = dict[str, list[Row]]


def complete(words: Sequence[str]) -> int:
    if found := candidates(words, read_table(sys.stdin)):
        say(*found)
    return 0


def write_table(table: Iterable[tuple[Sequence[str], Iterable[Row]]]) -> str:
    """The table of commands and arguments as text, which `read_table` reads."""
    lines = []
    for commands, rows in table:
        lines.append("\t".join(commands))
        lines += [
            f" {' '.join(row.flags)}\t{row.value}\t{'+' * row.many}\t{' '.join(row.choices)}"
            for row in rows
        ]
    return "\n".join(lines)


def read_table(lines: Iterable[str]) -> Table:
    """The arguments of each command."""
    table: Table = {}
    rows: list[Row] = []
    for line in lines:
        first, *rest = line.rstrip("\n").split("\t")
        if line.startswith(" "):
            value, many, choices = rest
            rows.append(Row(tuple(first.split()), value, bool(many), tuple(choices.split())))
        elif first:
            rows = []
            table.update(dict.fromkeys((first, *rest), rows))
    return table


def candidates(words: Sequence[str], table: Table) -> list[str]:
    """What the last word may become, after the others."""
    *before, current = [word for word in words if word != "="] or [""]  # bash cuts --flag=value
    named = max(
        n for n in range(min(len(before), 2) + 1) if " ".join(before[:n]) in _beginnings(table)
    )
    command = " ".join(before[:named])
    found = _following(command, table) if named == len(before) else []
    if not found or current.startswith("-"):
        found = _arguments(table.get(command, []), before[named:], current)
    return sorted({each for each in found if each.startswith(current)})


def _beginnings(table: Table) -> set[str]:
    return {"", *table, *(name.partition(" ")[0] for name in table)}


def _following(command: str, table: Table) -> list[str]:
    """The words that go on with the beginning of a command."""
    start = f"{command} " if command else ""
    return [name.removeprefix(start).split(" ")[0] for name in table if name.startswith(start)]


def _arguments(rows: Sequence[Row], before: Sequence[str], current: str) -> list[str]:
    """Flags, or values of what is to come next."""
    flags = {flag: row for row in rows for flag in row.flags}
    if current.startswith("-"):
        return [*flags, "--help"]
    awaited = _awaited(rows, flags, before)
    if awaited is None:
        return [*flags]
    return [*awaited.choices, *(_runs(before) if awaited.value == "RUN" else ())]


def _awaited(rows: Sequence[Row], flags: dict[str, Row], before: Sequence[str]) -> Row | None:
    """Whose value comes next, if it is not a flag."""
    places = [row for row in rows if not row.flags]
    awaited = None
    for word in before:
        if word in flags:
            awaited = flags[word] if flags[word].value else None
        elif awaited is not None:
            awaited = awaited if awaited.many else None
        elif places and not places[0].many:
            del places[0]
    return awaited or (places[0] if places else None)


def _runs(before: Sequence[str]) -> list[str]:
    """The runs of the store, and the models that come with hopscope."""
    stores = [value for flag, value in pairwise(before) if flag == "--store"]
    root = Path([os.environ.get("HOPSCOPE_STORE") or "runs", *stores][-1])
    return _folders(root) + _tags(root) + [f"gallery/{name}" for name in _folders(GALLERY)]


def _folders(root: Path) -> list[str]:
    """The names of the runs in a folder; none where it cannot be read."""
    with suppress(OSError):
        return [path.parent.name for path in root.glob("[!.]*/manifest.json")]
    return []


def _tags(root: Path) -> list[str]:
    """The tags that runs have; none where they cannot be read, as everybody else says why."""
    with suppress(OSError, ValueError, TypeError, AttributeError, KeyError):
        of_runs = json.loads((root / "tags.json").read_bytes())["runs"].values()
        return [tag for tags in of_runs for tag in tags if isinstance(tag, str)]
    return []
