"""Reads the file of a table; what is wrong with it is said in one line, with what to do."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from hopscope import __version__
from hopscope.errors import ResultsError, StoreError
from hopscope.papers.row import Row, read_row
from hopscope.papers.table import FORMAT, PROTOCOLS, Protocol, Table
from hopscope.store.files import read_bytes


def read_table(path: Path, target: str, kinds: Sequence[type[Row]]) -> Table:
    """The table of a target whose rows are of these kinds."""
    try:
        lines = [json.loads(line) for line in read_bytes(path).decode().splitlines()]
    except StoreError as error:
        raise ResultsError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(
            f"{path} is no table of results ({error}): remove it, and {anew(target)}"
        ) from error
    head, *rows = lines or [None]
    if isinstance(head, dict) and head.get("format", FORMAT) != FORMAT:
        raise ResultsError(
            f"{path} has format {head['format']!r}, this hopscope ({__version__}) reads "
            f"{FORMAT}: {anew(target)}"
        )
    if not _is_head(head, target) or not all(isinstance(row, dict) for row in rows):
        raise ResultsError(
            f"{path} is no table of results of {target}: remove it, and {anew(target)}"
        )
    found = []
    for number, values in enumerate(rows, start=2):
        try:
            found.append(read_row(kinds, values))
        except ResultsError as error:
            raise ResultsError(
                f"line {number} of {path} is damaged or of another hopscope ({error}): "
                f"{anew(target)}"
            ) from error
    without_rows = tuple(head.pop("without_rows", ()))
    return Table(**head, rows=tuple(found), without_rows=without_rows)


def protocol_of(path: Path) -> Protocol:
    """The protocol of a file of any format; the least, where it says nothing."""
    head = read_bytes(path).decode(errors="replace").partition("\n")[0]
    return next((known for known in PROTOCOLS if f'"{known}"' in head), "smoke")


def anew(target: str) -> str:
    """What to do about a table that cannot be read."""
    return f"`hopscope reproduce {target}` measures it anew"


def _is_head(line: Any, target: str) -> bool:
    """Is it the first line of this target's table?"""
    known = {field.name for field in fields(Table)} - {"rows"}
    return (
        isinstance(line, dict)
        and {"target", "protocol", "format"} <= set(line) <= known
        and line["target"] == target
        and line["protocol"] in tuple(PROTOCOLS)
        and isinstance(line.get("wanted", 0), int)
        and _are_names(line.get("without_rows", []))
        and all(isinstance(line.get(name, ""), str) for name in ("remark", "hopscope", "machine"))
    )


def _are_names(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(name, str) for name in found)
