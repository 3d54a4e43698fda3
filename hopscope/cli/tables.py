"""Tables and curves of runs in the terminal."""

from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from hopscope.report.terminal import plot
from hopscope.tasks import guessing_level
from hopscope.training import Run

THRESHOLDS = (0.5, 0.1)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Print a table; wide values are folded but for the first column, none is cut off."""
    if title:
        print(title)
    drawn = Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        drawn.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in rows:
        drawn.add_row(*(_cell(value) for value in row))
    Console().print(drawn)


def print_losses(run: Run) -> None:
    """The curve of every hop, and a table of where each ended."""
    steps, losses = run.losses("train")
    level = guessing_level(run.experiment.task)
    if len(steps):
        print(f"\n{plot(steps, losses.mean(axis=1), level)}\n")
    if not run.folder.manifest.complete:
        print(f"{run.name}: stopped at step {run.folder.manifest.step:,}")
        return
    final = run.final_losses()
    columns = ["hop", "final loss", "guessing"]
    columns += [f"< {threshold} at step" for threshold in THRESHOLDS]
    rows = [
        (
            hop + 1,
            _spread(column),
            f"{level:.2f}",
            *(_first_below(steps, losses[:, :, hop], threshold) for threshold in THRESHOLDS),
        )
        for hop, column in enumerate(final.T)
    ]
    seconds = run.folder.manifest.seconds
    table(columns, rows, title=f"{run.name}: validation, trained in {seconds:.0f} s")


def _spread(values: np.ndarray) -> str:
    """The mean, and of a fleet the lowest and the highest."""
    span = f" ({values.min():.4f} … {values.max():.4f})" if len(values) > 1 else ""
    return f"{values.mean():.4f}{span}"


def _first_below(steps: np.ndarray, losses: np.ndarray, threshold: float) -> str:
    """When the models' running means [step, model] first fall below; a fleet's first and last."""
    from hopscope.report.curves import first_below

    reached = first_below(steps, losses, threshold)
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
