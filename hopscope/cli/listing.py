"""`hopscope runs`: the list of a store's runs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import numpy as np

from hopscope.cli import flags
from hopscope.cli.options import command, option
from hopscope.cli.output import printable, say, say_json, warn, width
from hopscope.cli.tables import table
from hopscope.configs.recipe import differing
from hopscope.plots.layout import GAP
from hopscope.plots.symbols import setting_text
from hopscope.plots.terminal import sparkline
from hopscope.store import Listed, Store
from hopscope.store.folder import in_store
from hopscope.store.summary import SUMMARY_POINTS, Summary, summaries

COURSE = range(8, SUMMARY_POINTS // 2 + 1)
"""Possible widths of the sparkline of a loss; in less space it is not printed."""
NEVER = datetime.min.replace(tzinfo=UTC)
ORDERS: dict[str, Callable[[Listed], Any]] = {
    "name": lambda run: run.name,
    "date": lambda run: run.date or NEVER,
    "size": lambda run: run.size,
    "state": lambda run: run.state,
}
"""Sort keys of --sort."""


@command(
    click.argument("part", default="", metavar="[PART]"),
    option("--state", "Only runs in this state.",
           choices=["any", "complete", "stopped", "in-training", "damaged"], default="any"),
    option("--sort", "Order of the list; the latest and the largest are at the end.",
           choices=["begun", *ORDERS], default="begun"),
    option("--varies", "Show the settings in which the listed runs differ, a column each, instead "
           "of date, size and tags."),
    flags.json, flags.store,
)  # fmt: skip
def runs(part: str, state: str, sort: str, varies: bool, json: bool, store: Store) -> int:
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
    losses, unreadable = summaries(
        store.root, [run.folder for run in wanted if run.folder is not None]
    )
    problems += unreadable
    rows = [_row(run, losses) for run in wanted]
    if varies:
        for row, settings in zip(rows, _settings(wanted), strict=True):
            row["settings"] = settings
    if json:
        say_json(rows)
    elif rows:
        _print(_columns(wanted, rows), [_course(run, losses) for run in wanted])
    elif found:
        say(f"No run matches ({len(found)} in {store.root}).")
    elif not problems:
        say(f"no runs in {store.root}: `{in_store(store.root, 'train', 'demo')}` makes one")
    for problem in problems:
        warn(problem)
    return 1 if problems else 0


def _row(run: Listed, losses: Mapping[str, Summary]) -> dict[str, Any]:
    """Return a run as JSON; `losses` has a mean per hop over the last 100 steps and all models."""
    models = len(run.folder.recipe.seeds) if run.folder else 0
    last, _ = losses.get(run.name, ([], []))
    return {**run.to_dict(), "models": models, "losses": [round(loss, 6) for loss in last]}


def _course(run: Listed, losses: Mapping[str, Summary]) -> np.ndarray:
    """Return the loss over training, divided by 1.2 times the loss at chance."""
    level = (run.folder.recipe.chance if run.folder else None) or 1.0
    _, course = losses.get(run.name, ([], []))
    return np.array(course) / (1.2 * level)


def _settings(listed: Sequence[Listed]) -> list[dict[str, Any]]:
    """Return for each run the settings in which the runs differ (damaged runs: empty)."""
    read = {n: run.folder for n, run in enumerate(listed) if run.folder is not None}
    found = differing([folder.recipe for folder in read.values()])
    settings: list[dict[str, Any]] = [{} for _ in listed]
    for place, number in enumerate(read):
        settings[number] = {field: values[place] for field, values in found.items()}
    return settings


def _columns(listed: Sequence[Listed], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the columns to print: name, state, losses, date, size and tags of each run.

    If `rows` have settings, these replace date, size and tags. The last part of a setting's name
    is its title if that is unique.
    """
    columns = {"run": [run.name for run in listed], "state": [_state(run) for run in listed]}
    losses = [" ".join(f"{loss:.3f}" for loss in row["losses"]) for row in rows]
    if "settings" not in rows[0]:
        if any(row["models"] > 1 for row in rows):
            columns["models"] = [str(row["models"] or "") for row in rows]
        return columns | {
            "training losses": losses,
            "date": [f"{run.date:%Y-%m-%d}" if run.date else "" for run in listed],
            "size": [f"{run.size / 1e6:.1f} MB" for run in listed],
            "tags": [" ".join(run.tags) for run in listed],
        }
    settings = [row["settings"] for row in rows]
    fields = [*dict.fromkeys(field for each in settings for field in each)]
    short = Counter(field.rpartition(".")[2] for field in fields)
    for field in fields:
        last = field.rpartition(".")[2]
        name = last if short[last] == 1 and last not in columns else field
        columns[name] = [setting_text(each[field]) if field in each else "" for each in settings]
    return columns | {"training losses": losses}


def _print(columns: Mapping[str, Sequence[str]], courses: Sequence[np.ndarray]) -> None:
    """Print a line for each run, with a sparkline of its loss if the terminal is wide enough."""
    shown = {name: [*texts] for name, texts in columns.items() if any(texts)}
    taken = [max(len(printable(text)) for text in (name, *texts)) for name, texts in shown.items()]
    left = min(width() - sum(taken) - GAP * len(shown), max(COURSE))
    if left in COURSE and any(map(len, courses)):
        shown["course"] = [sparkline(course, left) for course in courses]
    table(list(shown), list(zip(*shown.values(), strict=True)))


def _state(run: Listed) -> str:
    """Return the steps of a complete run; otherwise the step reached, and the state."""
    if run.state == "complete":
        return f"{run.step:,}"
    return run.state if run.folder is None else f"{run.step:,} of {run.steps:,}, {run.state}"
