"""What a table rests on, in words: how many runs, which seeds, what training them cost."""

from collections.abc import Sequence
from typing import Any

from hopscope.configs import Experiment, Recipe
from hopscope.papers.cost import in_flop, training_flop
from hopscope.papers.row import Row
from hopscope.papers.table import Table
from hopscope.papers.target import Target

HOUR, MINUTE = 3_600, 60


def basis(table: Table, target: Target) -> str:
    """Runs, seeds and cost of a table, and its protocol unless all of the paper's is measured;
    empty if nothing of them is known.
    """
    runs, total = len(table.runs), len(table.runs) + table.missing
    recipes = [each for each in target.runs(table.protocol)[1] if each.run_name() in table.runs]
    told = [
        f"{table.protocol} protocol" * (table.protocol != "full" or table.missing > 0),
        "computed, without any training" * (not target.recipes),
        f"{runs}{f' of {total}' * (total > runs)} run{'s' * (total > 1)}" * (runs > 0),
        _seeds(table.rows),
        _flop(recipes),
        _time(table.rows),
        _precision(table.rows),
    ]
    known = ", ".join(filter(None, told))
    return f"{table.target}: {known}" if known else ""


def _seeds(rows: Sequence[Row]) -> str:
    seeds = set(_known(rows, "seed").values())
    if len(seeds) == 1:
        return f"seed {min(seeds)}"
    return f"{len(seeds)} seeds" if seeds else ""


def _flop(recipes: Sequence[Recipe]) -> str:
    """What these trainings cost; nothing of runs of another kind."""
    flop = sum(training_flop(each) for each in recipes if isinstance(each, Experiment))
    return in_flop(flop) if flop else ""


def _time(rows: Sequence[Row]) -> str:
    """How long all runs took by the clock, on the machines that the table names."""
    of_runs = {rows[place].run or place: it for place, it in _known(rows, "seconds").items()}
    seconds = sum(of_runs.values())
    if not seconds:
        return ""
    told = f"{seconds / HOUR:.1f} h" if seconds >= HOUR else f"{seconds / MINUTE:.0f} min"
    return f"{told} of {' and '.join(sorted({row.activity for row in rows}))}"


def _precision(rows: Sequence[Row]) -> str:
    """The arithmetic of those runs of which it was recorded."""
    known = sorted(set(_known(rows, "precision").values()))
    return f"in {' and '.join(known)}" if known else ""


def _known(rows: Sequence[Row], name: str) -> dict[int, Any]:
    """The value of a field that several kinds of rows have, for those rows that have it."""
    found = {place: getattr(row, name, None) for place, row in enumerate(rows)}
    return {place: value for place, value in found.items() if value is not None}
