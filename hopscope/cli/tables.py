"""Tables and curves of runs in the terminal."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hopscope.cli.output import emit, printable, say, width
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


def print_losses(run: "Run") -> None:
    """The curve of every hop, and a table of where each ended."""
    steps, losses = run.losses("train")
    level = run.experiment.guess or 1.0
    if len(steps):
        say("", *plot(steps, losses.mean(axis=1), level, width()).splitlines(), "")
    if not run.folder.manifest.complete:
        state = "in training," if run.folder.in_training() else "stopped at"
        say(f"{run.name}: {state} step {run.folder.manifest.step:,}")
        return
    final, thresholds = run.final_losses(), (learned_below(level), LOW)
    reached = [run.learned(threshold) for threshold in thresholds]
    columns = ["hop", "final loss", "guessing"]
    columns += [f"< {threshold:.2g} at step" for threshold in thresholds]
    rows = [
        (
            number,
            _spread(final[:, hop]),
            f"{level:.2f}",
            *(told([model[hop] for model in found]) for found in reached),
        )
        for hop, number in enumerate(run.experiment.task.asked_hops())
    ]
    seconds = run.folder.manifest.seconds
    table(columns, rows, title=f"{run.name}: validation, trained in {seconds:.0f} s")


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


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
