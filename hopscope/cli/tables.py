"""Tables and curves of runs in the terminal."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.cli.output import emit, printable, prose, say, say_json, width
from hopscope.configs.kinds import KINDS, fetched
from hopscope.configs.recipe import SPLITS
from hopscope.configs.training import FINAL_STEPS
from hopscope.milestones import learned_below
from hopscope.plots.layout import laid_out
from hopscope.plots.piece import Piece, of_plots, pieces_of
from hopscope.plots.symbols import when_text
from hopscope.plots.terminal import plot
from hopscope.store.checkpoints import earlier_weights

if TYPE_CHECKING:
    from hopscope.circuits.circuit import Circuit
    from hopscope.training import Run

LOW = 0.1
"""A loss near zero; `show` also prints the step at which it was reached."""
MEAN = f"Final losses are means over the last {FINAL_STEPS} steps (of all, if there are fewer)."
SPREAD = "Each is the mean of the models; in brackets: lowest to highest of the models."


Part = Piece | str
"""A printed part of a result: a piece, or a text that is not wrapped."""


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str = "",
    colours: Mapping[str, str] | None = None,
) -> None:
    """Print a table fitted to the terminal; `colours` are used only in a terminal."""
    if title:
        prose(title)
    cells = [[printable(text_of(value)) for value in row] for row in rows]
    shown = colours if sys.stdout is not None and sys.stdout.isatty() else None
    emit(laid_out(list(map(printable, columns)), cells, width(), shown))


def print_parts(parts: Iterable[Part]) -> None:
    """Print the parts of a result: texts, and tables with texts below them."""
    first = True
    for part in parts:
        if isinstance(part, Piece) and not (part.rows or part.lines):
            continue
        if not first:
            say()
        first = False
        if isinstance(part, str):
            say(*part.splitlines())
            continue
        if part.rows:
            table(part.columns, part.rows, part.title)
        if part.rows and part.lines:
            say()
        prose(*part.lines)


def circuit_parts(found: "Circuit") -> list[Part]:
    """Return the verdict, the circuit as a grid, and the other pieces of the circuit."""
    verdict, *rest = pieces_of(found)
    return [verdict, of_plots("words:circuit_grid")(found), *rest]


def piece_of(
    rows: Sequence[Mapping[str, Any]], formats: Mapping[str, str], title: str = ""
) -> Piece:
    """Make a table whose columns are the keys of its rows; `formats` are by key."""
    columns = [key.replace("_", " ") for key in rows[0]] if rows else []
    cells = [
        [_formatted(value, formats.get(key, "")) for key, value in row.items()] for row in rows
    ]
    return Piece(title, columns, cells)


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    formats: Mapping[str, str],
    title: str = "",
    *,
    json: bool = False,
) -> None:
    """Print a table of these rows, or JSON with the values unformatted."""
    if json:
        say_json([*rows])
    else:
        print_parts([piece_of(rows, formats, title)])


def _formatted(value: object, form: str) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if isinstance(value, list | tuple):
        return " ".join(_formatted(each, form) for each in value)
    return text_of(value) if value is None or not form else format(value, form)


def run_parts(run: Any) -> Sequence[Part]:
    """Return the printed results of a run, by its kind."""
    found: Sequence[Part] = fetched(KINDS[run.recipe.kind].text)(run)
    return found


def run_rows(run: Any) -> list[dict[str, Any]]:
    """Return the results of a run as rows; empty if it is not complete."""
    if not run.folder.manifest.complete:
        return []
    found: list[dict[str, Any]] = fetched(KINDS[run.recipe.kind].rows)(run)
    return found


def unfinished(run: Any) -> str:
    """Return the progress of an incomplete run as a line."""
    state = "in training," if run.folder.in_training() else "stopped at"
    return f"{run.name}: {state} {run.recipe.unit} {run.folder.manifest.step:,}"


def loss_parts(run: "Run") -> list[Part]:
    """Return the loss curves of all hops, and a table of final losses."""
    steps, losses = run.losses("train")
    levels = [*dict.fromkeys(level or 1.0 for level in run.recipe.chances)]
    hops = run.recipe.asked_hops()
    curves: list[Part] = []
    if len(steps):
        drawn = plot(steps, losses.mean(axis=1), levels, width(), hops)
        curves = [f"{drawn}\n       loss in training (digits: hops; dotted: chance)"]
    if not run.folder.manifest.complete:
        return [*curves, unfinished(run)]
    rows = learned_rows(run)
    below = [name for name in rows[0] if name.endswith("_at")]
    shown = [
        (
            str(row["hop"]),
            _spread(np.array(row["final_loss"])),
            f"{row['chance']:.3g}",
            *(when_text(row[name]) for name in below),
        )
        for row in rows
    ]
    reached = ["learned at step", f"< {LOW} at step"][: len(below)]
    seconds = run.folder.manifest.seconds
    title = f"{run.name}: validation, trained in {seconds:.0f} s"
    spread = SPREAD if len(run.recipe.seeds) > 1 else ""
    lines = [*filter(None, [MEAN, spread, earlier_weights(run.folder)])]
    return [*curves, Piece(title, ["hop", "final loss", "chance", *reached], shown, lines)]


def learned_rows(run: "Run") -> list[dict[str, Any]]:
    """Return a row for each hop: every model's final loss, and the step at which it was learned."""
    chances, final = run.recipe.task.chances(), run.final_losses()
    reached = {"learned_at": run.learned()}
    if min(learned_below(chances)) > LOW:
        reached[f"below_{LOW}_at"] = run.learned(LOW)
    return [
        {"hop": number, "final_loss": final[:, hop].tolist(), "chance": chances[hop]}
        | {name: [model[hop] for model in found] for name, found in reached.items()}
        for hop, number in enumerate(run.recipe.task.asked_hops())
    ]


def last_loss_parts(run: Any) -> list[Part]:
    """Return the progress of a run, and a table of the last losses of each split."""
    manifest, unit = run.folder.manifest, run.recipe.unit
    state = "" if manifest.complete else f" of {run.recipe.steps:,}"
    reached = f"{run.name}: {unit} {manifest.step:,}{state}, {manifest.seconds:.1f} s"
    return [reached, piece_of(last_losses(run), {})]


def last_losses(run: Any) -> list[dict[str, Any]]:
    """Return a row for each loss of each split: its last value, the mean over models."""
    rows = []
    for split in SPLITS:
        steps, losses = run.losses(split)
        if len(steps):
            names = run.recipe.loss_names(losses.shape[2])
            last = losses[-1].mean(axis=0).tolist()
            rows += [
                {"split": split, "of": name, "last_loss": loss}
                for name, loss in zip(names, last, strict=True)
            ]
    return rows


def _spread(values: np.ndarray) -> str:
    """Return the mean as text; for a fleet also the lowest and highest value."""
    span = f" ({values.min():.4f} … {values.max():.4f})" if len(values) > 1 else ""
    return f"{values.mean():.4f}{span}"


def text_of(value: object) -> str:
    """Return a value as table text: empty for None, floats with six significant digits."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
