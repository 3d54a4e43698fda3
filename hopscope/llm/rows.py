"""What was measured of each pair of questions, as a run keeps it: a line of JSON for each."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from hopscope.configs import LlmMechanism
from hopscope.errors import RunDamaged
from hopscope.store import RunFolder

ROWS = "rows/all.jsonl"
PART = "rows/part-"
DIGITS = 6

Measured = dict[str, Any]
"""The phase, the number of the question, and what was measured of it."""


def line(row: Measured) -> str:
    """A row as a line of JSON."""
    return json.dumps(row, separators=(",", ":")) + "\n"


def numbers(values: Any) -> Any:
    """Numbers of any shape as lists, rounded; what is no number is null."""
    found = np.round(np.asarray(values, dtype=np.float64), DIGITS)
    told = found.astype(object)
    told[~np.isfinite(found)] = None
    return told.tolist()


def rows_of(folder: RunFolder) -> list[Measured]:
    """All rows that were committed, in the order in which they were measured."""
    recipe = folder.recipe_as(LlmMechanism)
    found = folder.snapshot(lambda: _read(folder))
    phases = [phase for phase, _ in recipe.phases]
    counts = dict(recipe.phases)
    for phase in phases:
        its = [row["index"] for row in found if row["phase"] == phase]
        if len(its) > counts[phase] or len(set(its)) < len(its):
            raise _damaged(folder, f"phase {phase} has questions that were not asked, or twice")
    return sorted(found, key=lambda row: phases.index(row["phase"]))


def of_phase(rows: Sequence[Measured], phase: str) -> list[Measured]:
    """The rows of one phase."""
    return [row for row in rows if row["phase"] == phase]


def _read(folder: RunFolder) -> list[Measured]:
    known = {phase for phase, _ in folder.recipe_as(LlmMechanism).phases}
    found = []
    for name in folder.files("rows/"):
        for text in folder.read(name).decode().splitlines():
            try:
                row = json.loads(text)
                told = isinstance(row, dict) and row["phase"] in known and row["index"] >= 0
            except (ValueError, KeyError, TypeError):
                told = False
            if not told:
                raise _damaged(folder, f"{name} holds what is no row of it")
            found.append(row)
    return found


def _damaged(folder: RunFolder, why: str) -> RunDamaged:
    return RunDamaged(
        f"{folder.path}: {why}: restore it from a copy, or `hopscope rm {folder.name}` and measure "
        "again"
    )
