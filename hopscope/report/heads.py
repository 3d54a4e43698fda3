"""Heads of a language model, by what they read."""

import numpy as np
from matplotlib.figure import Figure

from hopscope.llm.heads import HeadScores


def heads_figure(scores: HeadScores) -> Figure:
    """For each purpose, every head's largest score over its routes; rings: beyond chance."""
    purposes = list(dict.fromkeys(route.purpose for route in scores.routes))
    figure = Figure(figsize=(4 * len(purposes), 6.5), layout="constrained")
    for axes, purpose in zip(figure.subplots(1, len(purposes)), purposes, strict=True):
        chosen = [n for n, route in enumerate(scores.routes) if route.purpose == purpose]
        peak = scores.score[chosen].max(axis=0)
        shown = axes.imshow(peak, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", origin="lower")
        layer, head = np.nonzero(scores.significant[chosen].any(axis=0))
        axes.plot(head, layer, "o", markersize=6, markerfacecolor="none", color="#222222")
        axes.set(title=purpose, xlabel="head", ylabel="layer")
    figure.colorbar(shown, ax=figure.axes, label="attention to own chain − to others", shrink=0.6)
    figure.suptitle(
        f"{scores.model} on {scores.kind}: {scores.questions} questions, {scores.correct} answered "
        "correctly (rings: beyond chance)",
        fontsize=10,
    )
    return figure
