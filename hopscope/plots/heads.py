"""Heads of a language model, by what they read."""

import numpy as np

from hopscope.lm.heads import HeadScores
from hopscope.plots.look import COLOURS, Picture, amounts, drawn, picture


@drawn
def heads_figure(scores: HeadScores) -> Picture:
    """For each purpose, every head's largest score over its routes; rings: beyond chance."""
    purposes = list(dict.fromkeys(route.purpose for route in scores.routes))
    layers = scores.score.shape[1]
    figure = picture(
        f"heads of {scores.model} on {scores.kind}",
        "Of each head the most that it attends to the own chain beyond what it gives to each other "
        "chain, over all routes of a kind; rings: more than chance. "
        f"{scores.questions} questions, {scores.correct} answered correctly.",
        min(4.0, 0.09 * layers + 1.1),
        columns=2,
    )
    panels = figure.subplots(1, len(purposes), sharey=True, squeeze=False)[0]
    for axes, purpose in zip(panels, purposes, strict=True):
        chosen = [n for n, route in enumerate(scores.routes) if route.purpose == purpose]
        peak = scores.score[chosen].max(axis=0)
        # Below zero a head attends elsewhere: for the question asked here that is nothing.
        shown = axes.imshow(peak, cmap=amounts(), vmin=0, vmax=1, aspect="auto", origin="lower")
        layer, head = np.nonzero(scores.significant[chosen].any(axis=0))
        axes.plot(head, layer, "o", markersize=4, markerfacecolor="none", color=COLOURS[1])
        axes.set(title=purpose, xlabel="head")
        axes.xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_ylabel("layer")
    panels[0].yaxis.get_major_locator().set_params(integer=True)
    figure.colorbar(shown, ax=list(panels), label="own chain − others", aspect=18)
    return figure
