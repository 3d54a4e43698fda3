"""Tables and curves of runs in the terminal."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from json import dumps
from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.cli.output import emit, printable, say, say_json, width
from hopscope.milestones import learned_below
from hopscope.report.layout import laid_out
from hopscope.report.terminal import plot

if TYPE_CHECKING:
    from hopscope.training import Run

LOW = 0.1
"""A loss that is nearly none; `show` tells when it was reached, too."""


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str = "",
    colours: Mapping[str, str] | None = None,
) -> None:
    """Print a table as wide as the terminal; `colours` are for those that show them."""
    if title:
        say(title)
    cells = [[printable(_cell(value)) for value in row] for row in rows]
    shown = colours if sys.stdout is not None and sys.stdout.isatty() else None
    emit(laid_out(list(map(printable, columns)), cells, width(), shown))


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    formats: Mapping[str, str],
    title: str = "",
    *,
    json: bool = False,
) -> None:
    """A table whose columns are the keys of its rows, numbers written in these formats; or JSON, in
    which values stay as they are.
    """
    if json:
        say_json([*rows])
        return
    columns = [key.replace("_", " ") for key in rows[0]] if rows else []
    cells = [
        [_formatted(value, formats.get(key, "")) for key, value in row.items()] for row in rows
    ]
    table(columns, cells, title)


def _formatted(value: object, form: str) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if isinstance(value, list | tuple):
        return " ".join(_formatted(each, form) for each in value)
    return _cell(value) if value is None or not form else format(value, form)


def print_losses(run: "Run") -> None:
    """The curve of every hop, and a table of where each ended."""
    steps, losses = run.losses("train")
    level = run.recipe.chance or 1.0
    if len(steps):
        say("", *plot(steps, losses.mean(axis=1), level, width()).splitlines(), "")
    if not run.folder.manifest.complete:
        state = "in training," if run.folder.in_training() else "stopped at"
        say(f"{run.name}: {state} step {run.folder.manifest.step:,}")
        return
    rows = loss_rows(run)
    below = [name for name in rows[0] if name.startswith("below")]
    shown = [
        (
            row["hop"],
            _spread(np.array(row["final_loss"])),
            f"{rows[0]['guessing']:.2f}",
            *(told(row[name]) for name in below),
        )
        for row in rows
    ]
    reached = [f"< {name.split('_')[1]} at step" for name in below]
    seconds = run.folder.manifest.seconds
    title = f"{run.name}: validation, trained in {seconds:.0f} s"
    table(["hop", "final loss", "guessing", *reached], shown, title)


def loss_rows(run: "Run") -> list[dict[str, Any]]:
    """Of each hop the final loss of every model, and when each came below what was learned."""
    chance = run.recipe.chance
    level = chance or 1.0
    final = run.final_losses()
    reached = {limit: run.learned(limit) for limit in (learned_below(level), LOW)}
    return [
        {"hop": number, "final_loss": final[:, hop].tolist(), "guessing": chance}
        | {f"below_{at:.2g}_at": [model[hop] for model in found] for at, found in reached.items()}
        for hop, number in enumerate(run.recipe.task.asked_hops())
    ]


def _spread(values: np.ndarray) -> str:
    """The mean, and of a fleet the lowest and the highest."""
    span = f" ({values.min():.4f} … {values.max():.4f})" if len(values) > 1 else ""
    return f"{values.mean():.4f}{span}"


def told(reached: Sequence[int | None]) -> str:
    """When each model of a fleet learned something: the first and the last of them."""
    times = [step for step in reached if step is not None]
    if not times:
        return "never"
    span = f"{min(times):,}" if min(times) == max(times) else f"{min(times):,} … {max(times):,}"
    never = len(reached) - len(times)
    return f"{span} ({never} of {len(reached)} never)" if never else span


def setting(value: object) -> str:
    """A value of a recipe, as a cell."""
    if isinstance(value, list | dict):
        return dumps(value)
    return "-" if value is None else str(value)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
