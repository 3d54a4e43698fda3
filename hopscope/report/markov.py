"""Figures of the n-gram experiment: its stages, its heads, its way to the induction head."""

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopscope.configs import MarkovProcess
from hopscope.markov.evaluation import Comparison, Moment
from hopscope.markov.parameters import set_name, sets, softmax
from hopscope.markov.run import MarkovRun
from hopscope.report.curves import COLOURS
from hopscope.report.stages import Stages, draw_stages
from hopscope.report.transfer import Transfer, draw_transfer


def stages_figure(run: MarkovRun) -> Figure:
    """The selector's sets, the heads' attention, the scale a, and the losses, by epoch."""
    model, courses = run.experiment.model, [run.course(seed) for seed in run.experiment.seeds]
    attention = np.stack([softmax(course.w) for course in courses])
    found = Stages(
        plan=run.experiment.descent.plan(),
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


def heads_figure(run: MarkovRun) -> Figure:
    """Every head's attention to every lag, before and after training (the mean over seeds)."""
    courses = [run.course(seed) for seed in run.experiment.seeds]
    sides = {
        "before": np.mean([softmax(course.w[0]) for course in courses], axis=0),
        "after": np.mean([softmax(course.w[-1]) for course in courses], axis=0),
    }
    model = run.experiment.model
    figure = Figure(
        figsize=(2.2 + 1.3 * model.window, 1.6 + 0.5 * model.heads), layout="constrained"
    )
    for axes, (name, attention) in zip(figure.subplots(1, 2), sides.items(), strict=True):
        axes.imshow(attention, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for (head, lag), weight in np.ndenumerate(attention):
            colour = "white" if weight > 0.5 else "black"
            axes.text(
                lag, head, f"{weight:.3f}", ha="center", va="center", color=colour, fontsize=8
            )
        axes.set_xticks(range(model.window), range(1, model.window + 1))
        axes.set_yticks(range(model.heads), range(1, model.heads + 1))
        axes.set(title=f"attention {name}", xlabel="lag", ylabel="head")
    return figure


def approach_figure(run: MarkovRun, moments: Sequence[Sequence[Moment]], gap: float) -> Figure:
    """The last stage: how far the model is from GIH by epoch and by a, and how a grows."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for number, seed in enumerate(moments):
        epochs = np.array([each.epoch for each in seed]) + 1
        scale = np.array([each.a for each in seed])
        distance = [each.distance for each in seed]
        label = "each seed" if number == 0 else None
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
        one.spines[["top", "right"]].set_visible(False)
        one.legend(frameon=False, fontsize=8)
    if any(each.distance > 0 for seed in moments for each in seed):
        axes[0].set_yscale("log")
        axes[1].set_yscale("log")
    for one in (axes[0], axes[2]):
        one.set_xscale("log")
    figure.suptitle(f"{_title(run)}: towards the induction head", fontsize=11)
    return figure


def transfer_figure(
    run: MarkovRun, found: Sequence[Sequence[tuple[MarkovProcess, Comparison]]]
) -> Figure:
    """Losses and distance to GIH on chains of other lengths (left) and priors (right)."""
    trained, columns = run.experiment.process, []
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
    return draw_transfer(columns, f"{_title(run)}: other chains (dotted: trained on)")


def _predicted(axes: Axes, moments: Sequence[Sequence[Moment]], gap: float) -> None:
    """A line with the slope that a large a grows by: da/dt ~ e^(−a·gap) gives log(t)/gap."""
    ends = np.array([each.epoch for each in moments[0]]) + 1
    scale = np.mean([[each.a for each in seed] for seed in moments], axis=0)
    half = int(np.searchsorted(scale, 0.8 * scale[-1]))
    reach = ends[max(0, half - 20) : half + 20]
    line = scale[half] + np.log(reach / ends[half]) / gap
    axes.plot(reach, line, "--", color=COLOURS[1], label=f"slope 1/gap = {1 / gap:.2f}")


def _title(run: MarkovRun) -> str:
    process, seeds = run.experiment.process, len(run.experiment.seeds)
    parents = ", ".join(map(str, process.parents))
    several = f", {seeds} seeds" if seeds > 1 else ""
    return (
        f"{run.name}\n{process.alphabet} symbols, parents {parents}, α = {process.alpha:g}{several}"
    )
