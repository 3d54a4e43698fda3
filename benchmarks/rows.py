"""Rows of measurements: a line of JSON each, and tables of them as the docs write them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
Row = dict[str, Any]


def print_row(row: Mapping[str, Any]) -> None:
    """Print a row at once: what a long program has measured is there if it is stopped."""
    print(json.dumps(row, ensure_ascii=False), flush=True)


def add_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_rows(path: Path) -> list[Row]:
    """The rows of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, under its head."""
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(map(str, row)) + " |")
