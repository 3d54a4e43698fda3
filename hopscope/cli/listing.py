"""`hopscope runs`: what there is in a store."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
import numpy as np

from hopscope.cli.options import command, json_option, option, store_option
from hopscope.cli.output import printable, say, say_json, warn, width
from hopscope.cli.tables import table
from hopscope.configs.recipe import differing
from hopscope.store import Listed, Store
from hopscope.store.folder import in_store
from hopscope.store.summary import POINTS, summaries

COURSE = range(8, POINTS // 2 + 1)
"""Widths that the course of a loss may have; where less is left, there is none."""
NEVER = datetime.min.replace(tzinfo=UTC)
ORDERS: dict[str, Callable[[Listed], Any]] = {
    "name": lambda run: run.name,
    "date": lambda run: run.date or NEVER,
    "size": lambda run: run.size,
    "state": lambda run: run.state,
}
"""Ways to sort."""


@dataclass(frozen=True)
class Row:
    """A line of the list of runs."""

    listed: Listed
    models: int
    last: tuple[float, ...]
    """The last training losses, hop by hop: the mean of a hundred steps, over all models."""
    course: np.ndarray
    """The course of the loss, in shares of the loss at chance."""


@command(
    click.argument("part", default="", metavar="[PART]"),
    option("--state", "Only runs in this state.",
           choices=["any", "complete", "stopped", "in-training", "damaged"], default="any"),
    option("--sort", "Order of the list; the latest and the largest are at the end.",
           choices=["begun", *ORDERS], default="begun"),
    option("--varies", "Show the settings in which the listed runs differ, a column each, instead "
           "of date, size and tags."),
    json_option, store_option,
)  # fmt: skip
def runs(
    part: str,
    state: str,
    sort: str,
    varies: bool,
    json: bool,
    store: Store,
) -> int:
    """List runs with state, date, size, tags and the course of their losses.

    PART picks the runs whose name contains it or that have it as a tag.
    """
    found, problems = store.listed()
    wanted = [
        run for run in found
        if state in ("any", run.state.replace(" ", "-")) and (part in run.name or part in run.tags)
    ]  # fmt: skip
    if sort != "begun":
        wanted.sort(key=ORDERS[sort])
    rows = _rows(store, wanted, problems)
    if json:
        told = [{**row.listed.to_dict(), "models": row.models, "losses": row.last} for row in rows]
        if varies:
            pairs = zip(told, _settings(rows), strict=True)
            told = [{**row, "settings": settings} for row, settings in pairs]
        say_json(told)
    elif rows:
        _print(rows, _of_a_sweep(rows) if varies else _of_a_store(rows))
    elif found:
        say(f"No run matches ({len(found)} in {store.root}).")
    elif not problems:
        say(f"no runs in {store.root}: `{in_store(store.root, 'train', 'demo')}` makes one")
    for problem in problems:
        warn(problem)
    return 1 if problems else 0


def _rows(store: Store, listed: Sequence[Listed], problems: list[str]) -> list[Row]:
    """The runs with a summary of their losses."""
    folders = [run.folder for run in listed if run.folder is not None]
    losses, unreadable = summaries(store.root, folders)
    problems += unreadable
    rows = []
    for run in listed:
        last, course = losses.get(run.name, ([], []))
        recipe = run.folder.recipe if run.folder else None
        level = (recipe.chance if recipe else None) or 1.0
        rows.append(
            Row(
                run,
                len(recipe.seeds) if recipe else 0,
                tuple(round(loss, 6) for loss in last),
                np.array(course) / (1.2 * level),
            )
        )
    return rows


def _settings(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The settings of each run of which some run has another; of what is damaged, none."""
    read = {n: row.listed.folder for n, row in enumerate(rows) if row.listed.folder is not None}
    found = differing([folder.recipe for folder in read.values()])
    settings: list[dict[str, Any]] = [{} for _ in rows]
    for place, number in enumerate(read):
        settings[number] = {field: values[place] for field, values in found.items()}
    return settings


def _of_a_store(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The columns that tell of each run what and where it is."""
    return {
        "run": [row.listed.name for row in rows],
        "state": [_state(row.listed) for row in rows],
        "models": [str(row.models or "") for row in rows]
        if any(row.models > 1 for row in rows)
        else [],
        "training losses": [_told(row.last) for row in rows],
        "date": [f"{row.listed.date:%Y-%m-%d}" if row.listed.date else "" for row in rows],
        "size": [_size(row.listed.size) for row in rows],
        "tags": [" ".join(row.listed.tags) for row in rows],
    }


def _of_a_sweep(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The columns that tell in what the runs differ, under the last part of each field's name
    where that is enough, and what came of it.
    """
    from hopscope.plots.symbols import setting_text

    settings = _settings(rows)
    fields = [*dict.fromkeys(field for each in settings for field in each)]
    short = Counter(field.rpartition(".")[2] for field in fields)
    columns = {"run": [row.listed.name for row in rows]}
    columns["state"] = [_state(row.listed) for row in rows]
    for field in fields:
        last = field.rpartition(".")[2]
        name = last if short[last] == 1 and last not in columns else field
        columns[name] = [setting_text(each[field]) if field in each else "" for each in settings]
    return columns | {"training losses": [_told(row.last) for row in rows]}


def _told(losses: Sequence[float]) -> str:
    return " ".join(f"{loss:.3f}" for loss in losses)


def _print(rows: Sequence[Row], columns: Mapping[str, Sequence[str]]) -> None:
    """A line for each run; the courses take the width that the rest leaves, or there are none."""
    from hopscope.plots.layout import GAP
    from hopscope.plots.terminal import sparkline

    shown = {name: [*texts] for name, texts in columns.items() if any(texts)}
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
