"""Read and write rows of measurements as JSON lines, and print them as Markdown tables."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
Row = dict[str, Any]


def print_row(row: Mapping[str, Any]) -> None:
    """Print a row and flush, so that no row is lost if a long program is stopped."""
    print(json.dumps(row, ensure_ascii=False), flush=True)


def add_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_rows(path: Path) -> list[Row]:
    """The rows of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table."""
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(map(str, row)) + " |")
