"""Figures of the n-gram experiment: its stages, its heads, its way to the induction head."""

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
from matplotlib.axes import Axes

from hopscope.configs import NgramProcess
from hopscope.ngram.evaluation import Comparison, Moment
from hopscope.ngram.parameters import set_name, sets, softmax
from hopscope.ngram.run import NgramRun
from hopscope.report.look import COLOURS, INK, PAPER, SMALL, Picture, amounts, drawn, picture, width
from hopscope.report.names import run_title
from hopscope.report.stages import Stages, draw_stages
from hopscope.report.symbols import seeds_told
from hopscope.report.transfer import Transfer, draw_transfer

ONE_COLUMN = 4
"""Inches up to which panels stand below each other; and lags for which one column has room."""


@drawn
def stages_figure(run: NgramRun) -> Picture:
    """The selector's sets, the heads' attention, the scale a, and the losses, by epoch."""
    model, courses = run.recipe.model, [run.course(seed) for seed in run.recipe.seeds]
    attention = np.stack([softmax(course.w) for course in courses])
    found = Stages(
        plan=run.recipe.descent.plan(),
        epochs=courses[0].epochs,
        shares={
            set_name(heads): np.stack([course.shares[:, number] for course in courses])
            for number, heads in enumerate(sets(model))
        },
        attention={
            f"head {head + 1} to lag {lag + 1}": attention[:, :, head, lag]
            for head, lag in ((head, min(head, model.window - 1)) for head in range(model.heads))
        },
        a=np.stack([course.a for course in courses]),
        losses={split: run.losses(split)[1][:, :, 0].T for split in ("train", "validation")},
    )
    return draw_stages(found, _title(run))


@drawn
def heads_figure(run: NgramRun) -> Picture:
    """Every head's attention to every lag, before and after training (the mean over seeds)."""
    courses = [run.course(seed) for seed in run.recipe.seeds]
    sides = {
        "before": np.mean([softmax(course.w[0]) for course in courses], axis=0),
        "after": np.mean([softmax(course.w[-1]) for course in courses], axis=0),
    }
    model = run.recipe.model
    figure = picture(
        _title(run),
        "Attention of every head of the first layer to every lag, before and after training"
        + (f"; means of {len(courses)} seeds." if len(courses) > 1 else "."),
        0.9 + 0.28 * model.heads,
        columns=1 if model.window <= ONE_COLUMN else 2,
    )
    for axes, (name, attention) in zip(figure.subplots(1, 2), sides.items(), strict=True):
        shown = axes.imshow(attention, cmap=amounts(), vmin=0, vmax=1, aspect="auto")
        for (head, lag), weight in np.ndenumerate(attention):
            colour = PAPER if weight > 0.5 else INK
            axes.text(
                lag, head, f"{weight:.2f}", ha="center", va="center", color=colour, fontsize=SMALL
            )
        axes.set_xticks(range(model.window), range(1, model.window + 1))
        axes.set_yticks(range(model.heads), range(1, model.heads + 1))
        axes.set(title=f"{name} training", xlabel="lag", ylabel="head")
    figure.colorbar(shown, ax=figure.axes, label="attention", aspect=12)
    return figure


@drawn
def approach_figure(run: NgramRun, moments: Sequence[Sequence[Moment]], gap: float) -> Picture:
    """The last stage: how far the model is from GIH by epoch and by a, and how a grows."""
    across = 1 if width(2) < ONE_COLUMN else 3
    several = "each seed" if len(moments) > 1 else "the model"
    figure = picture(
        _title(run),
        "The last stage: the distance to the generalised induction head (GIH) by epoch and by the "
        "scale a, and how a grows. A line for each seed; dashed: the slope that is predicted where "
        "a is large.",
        2.1 * 3 / across + 0.3,
        columns=2,
    )
    axes = figure.subplots(3 // across, across).ravel()
    for number, seed in enumerate(moments):
        epochs = np.array([each.epoch for each in seed]) + 1
        scale = np.array([each.a for each in seed])
        distance = [each.distance for each in seed]
        label = several if number == 0 else None
        style = {"color": COLOURS[0], "linewidth": 1, "alpha": 0.6, "label": label}
        axes[0].plot(epochs, distance, **style)
        axes[1].plot(scale, distance, **style)
        axes[2].plot(epochs, scale, **style)
    if gap > 0:
        _predicted(axes[2], moments, gap)
    labels = (("epoch of the stage", "distance to GIH"), ("a", "distance to GIH"),
              ("epoch of the stage", "a"))  # fmt: skip
    for one, (x, y) in zip(axes, labels, strict=True):
        one.set(xlabel=x, ylabel=y)
    if any(each.distance > 0 for seed in moments for each in seed):
        axes[0].set_yscale("log")
        axes[1].set_yscale("log")
    for one in (axes[0], axes[2]):
        one.set_xscale("log")
    axes[2].legend(loc="lower right")
    return figure


@drawn
def transfer_figure(
    run: NgramRun, found: Sequence[Sequence[tuple[NgramProcess, Comparison]]]
) -> Picture:
    """Losses and distance to GIH on chains of other lengths (left) and priors (right)."""
    trained, columns = run.recipe.process, []
    for name, kept in (("length", "alpha"), ("alpha", "length")):
        chosen = [
            number
            for number, (process, _) in enumerate(found[0])
            if getattr(process, kept) == getattr(trained, kept)
        ]
        chosen.sort(key=lambda number: getattr(found[0][number][0], name))
        losses = [[astuple(seed[number][1].expected) for number in chosen] for seed in found]
        columns.append(
            Transfer(
                varied=name,
                values=np.array([getattr(found[0][number][0], name) for number in chosen]),
                trained=getattr(trained, name),
                losses=np.array(losses),
                distance=np.array([[seed[n][1].distance for n in chosen] for seed in found]),
            )
        )
    return draw_transfer(columns, _title(run))


def _predicted(axes: Axes, moments: Sequence[Sequence[Moment]], gap: float) -> None:
    """A line with the slope that a large a grows by: da/dt ~ e^(−a·gap) gives log(t)/gap."""
    ends = np.array([each.epoch for each in moments[0]]) + 1
    scale = np.mean([[each.a for each in seed] for seed in moments], axis=0)
    half = int(np.searchsorted(scale, 0.8 * scale[-1]))
    reach = ends[max(0, half - 20) : half + 20]
    line = scale[half] + np.log(reach / ends[half]) / gap
    axes.plot(reach, line, "--", color=COLOURS[1], label=f"slope 1/gap = {1 / gap:.2f}")


def _title(run: NgramRun) -> str:
    process = run.recipe.process
    parents = ", ".join(map(str, process.parents))
    return (
        f"{run_title(run.folder)}: {process.alphabet} symbols, parents {parents}, "
        f"α = {process.alpha:g}, {seeds_told(run.recipe.seeds)}"
    )
