"""`hopscope runs`: what there is in a store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from hopscope.cli.arguments import JsonArguments, StoreArguments
from hopscope.cli.output import printable, say, say_json, warn, width
from hopscope.errors import RunDamaged
from hopscope.store import Listed, RunFolder, Store

COURSE = range(8, 33)
"""How wide the course of a loss may be; where less is left, there is none."""
NEVER = datetime.min.replace(tzinfo=UTC)
ORDERS: dict[str, Callable[[Listed], Any]] = {
    "name": lambda run: run.name,
    "date": lambda run: run.date or NEVER,
    "size": lambda run: run.size,
    "state": lambda run: run.state,
}
"""Ways to sort."""


@dataclass(frozen=True)
class RunsArguments(StoreArguments, JsonArguments):
    """List runs, oldest first, with state, date, size, tags and the course of their losses."""

    part: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PART")] = ""
    """Only runs whose name contains this, or one of whose tags is this; unset: all."""
    state: Literal["any", "complete", "stopped", "in-training", "damaged"] = "any"
    """Only runs in this state."""
    sort: Literal["begun", "name", "date", "size", "state"] = "begun"
    """In which order: as they were begun, or by the date of the last commit, …; the latest and the
    largest are at the end."""


@dataclass(frozen=True)
class Row:
    """A line of the list of runs."""

    listed: Listed
    models: int
    last: tuple[float, ...]
    """The last training losses, hop by hop: the mean of a hundred steps, over all models."""
    course: np.ndarray
    """The course of the loss, in shares of the loss of guessing."""


def runs(chosen: RunsArguments) -> int:
    store = Store(chosen.store)
    found, problems = store.listed()
    if not found and not problems:
        if chosen.json:
            say_json([])
        else:
            say(f"no runs in {store.root}: `hopscope train demo` makes one")
        return 0
    wanted = [run for run in found if _is_wanted(run, chosen)]
    if chosen.sort != "begun":
        wanted.sort(key=ORDERS[chosen.sort])
    rows = [_row(run, problems) for run in wanted]
    if chosen.json:
        say_json(
            [{**row.listed.to_dict(), "models": row.models, "losses": row.last} for row in rows]
        )
    elif rows:
        _print(rows)
    elif found:
        say(f"none of the {len(found)} runs in {store.root} is so")
    for problem in problems:
        warn(problem)
    return 1 if problems else 0


def _is_wanted(run: Listed, chosen: RunsArguments) -> bool:
    state = chosen.state in ("any", run.state.replace(" ", "-"))
    return state and (chosen.part in run.name or chosen.part in run.tags)


def _row(run: Listed, problems: list[str]) -> Row:
    """A run with its losses; if these cannot be read, that is a problem of this run alone."""
    if run.folder is None:
        return Row(run, 0, (), np.empty(0))
    models = len(run.folder.recipe.seeds)
    try:
        return Row(run, models, *_losses(run.folder))
    except RunDamaged as error:
        problems.append(str(error))
        damaged = Listed(run.name, "damaged", run.date, run.size, run.tags, problem=str(error))
        return Row(damaged, models, (), np.empty(0))


def _losses(folder: RunFolder) -> tuple[tuple[float, ...], np.ndarray]:
    from hopscope.store.metrics import ended, losses

    steps, values = losses(folder, "train")
    if not len(values):
        return (), np.empty(0)
    level = folder.recipe.guess or 1.0
    last = tuple(round(float(loss), 6) for loss in ended(steps, values).mean(axis=0))
    return last, values.mean(axis=(1, 2)) / (1.2 * level)


def _print(rows: Sequence[Row]) -> None:
    """A line for each run; the courses take the width that the rest leaves, or there are none."""
    from hopscope.cli.tables import table
    from hopscope.report.layout import GAP
    from hopscope.report.terminal import sparkline

    columns = {
        "run": [row.listed.name for row in rows],
        "state": [_state(row.listed) for row in rows],
        "models": [str(row.models or "") for row in rows]
        if any(row.models > 1 for row in rows)
        else [],
        "training losses": [" ".join(f"{loss:.3f}" for loss in row.last) for row in rows],
        "date": [f"{row.listed.date:%Y-%m-%d}" if row.listed.date else "" for row in rows],
        "size": [_size(row.listed.size) for row in rows],
        "tags": [" ".join(row.listed.tags) for row in rows],
    }
    shown = {name: texts for name, texts in columns.items() if any(texts)}
    taken = [max(len(printable(text)) for text in (name, *texts)) for name, texts in shown.items()]
    left = min(width() - sum(taken) - GAP * len(shown), max(COURSE))
    if left in COURSE:
        shown["course"] = [sparkline(row.course, left) for row in rows]
    table(list(shown), list(zip(*shown.values(), strict=True)))


def _state(run: Listed) -> str:
    """As short as it can be told: a complete run's steps, else how far it came, and the state."""
    if run.state == "complete":
        return f"{run.step:,}"
    return run.state if run.folder is None else f"{run.step:,} of {run.steps:,}, {run.state}"


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
