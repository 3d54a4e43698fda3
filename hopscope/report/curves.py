"""The loss of every hop during training, as a figure."""

from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.figure import Figure

from hopscope.errors import ConfigError
from hopscope.report.formats import check_format
from hopscope.store.files import writing
from hopscope.training import Run

COLOURS = ("#3366aa", "#ee7733", "#228833", "#aa3377", "#997700", "#66ccee", "#bb5566", "#333333")
"""The colours of curves, in this order; after the last they begin again."""
WINDOW = 25
"""Steps over which a drawn curve is smoothed; when a hop is learned is told by milestones."""
POINTS = 500
"""A longer curve is thinned to this many points, or up to twice as many."""
FULL_SCALE = 1.6
"""Height of the axis in guessing levels; the first steps are worse, and say little."""


def loss_curves(run: Run) -> Figure:
    """Training loss (smoothed) and validation loss of every hop; a band spans a fleet."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    steps, losses = run.losses("train")
    checked, validation = run.losses("validation")
    shown = slice(None, None, max(1, len(steps) // POINTS))
    steps, smooth = steps[shown], smoothed(losses)[shown]
    for hop, number in enumerate(run.experiment.task.asked_hops()):
        colour = COLOURS[hop % len(COLOURS)]
        label = f"$x_{{{number}}}$"
        if losses.shape[1] > 1:
            low, high = smooth[:, :, hop].min(1), smooth[:, :, hop].max(1)
            axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(steps, smooth[:, :, hop].mean(1), color=colour, label=label)
        axes.plot(checked, validation[:, :, hop].mean(1), ".", color=colour, markersize=3)
    level = run.experiment.task.guess()
    axes.axhline(level, color="#999999", linestyle=":", label="guess")
    axes.set(xlabel="step", ylabel="loss of each hop (dots: validation)", title=_title(run))
    axes.set_ylim(0, FULL_SCALE * level)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def _title(run: Run) -> str:
    model, models = run.experiment.model, len(run.experiment.seeds)
    fleet = f", {models} models" if models > 1 else ""
    return f"{run.name}\n{model.layers} layers × {model.heads} heads{fleet}"


def smoothed(losses: Float[np.ndarray, "step model hop"]) -> Float[np.ndarray, "step model hop"]:
    """The mean over the last WINDOW steps."""
    if len(losses) == 0:
        return losses
    sums = np.cumsum(losses, axis=0, dtype=float)
    sums[WINDOW:] -= sums[:-WINDOW].copy()
    counts = np.minimum(np.arange(1, len(losses) + 1), WINDOW)
    return sums / counts[:, None, None]


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure in the format its name asks for."""
    check_format(path)
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; expected a file for the figure")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with rc_context({"svg.hashsalt": path.name}):  # else ids differ from call to call
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path
