"""The circuit of a language model as a figure: maps of roles by layers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from hopscope.facts import Role
from hopscope.lm.findings import LmCircuitRun, LmFindings
from hopscope.plots.lm_words import exchanged, shown_roles
from hopscope.plots.look import SMALL, Picture, drawn, figure_width, picture, shade

COLUMN, ROW = 0.14, 0.06
"""Least width of a role, and height of a layer, in inches."""
PANEL, BESIDE = 1.4, 0.9
"""Least width of a panel, and width of the colour bar and labels, in inches."""


def run_figure(run: LmCircuitRun) -> Picture:
    """Draw the findings of a run."""
    return lm_circuit_figure(run.findings)


@drawn
def lm_circuit_figure(found: LmFindings) -> Picture:
    """Draw maps with layers upward: how far answers follow the stream at each role (a panel for
    each exchange), the logit lens there, and how the last look-up finds its line.
    """
    roles = shown_roles(found) or [*range(len(found.roles))]
    names = [_name(found.roles[role]) for role in roles]
    follows = {
        exchanged(name): np.array([[each.mean for each in shares[role]] for role in roles])
        for name, shares in found.shares.items()
    }
    lens = {f"logit lens: {name}": its.probability[roles] for name, its in found.lens.items()}
    by = {name: [each.mean for each in its] for name, its in found.last_look_up.items()}
    groups: list[tuple[str, dict[str, np.ndarray], list[str]]] = [
        ("how far the answer follows", follows, names),
        ("probability", lens, names),
        ("share of answers", {"the last look-up": np.array([*by.values()])} if by else {}, [*by]),
    ]
    groups = [group for group in groups if group[1]]
    room = int((figure_width(2) - BESIDE) / max(COLUMN * len(roles), PANEL))
    across = max(1, min(room, max(len(panels) for _, panels, _ in groups)))
    rows = [-(-len(panels) // across) for _, panels, _ in groups]
    high = max(1.2, ROW * len(found.layers))
    figure = picture(
        f"{found.recipe.model} on {found.recipe.prompts.label}: {found.answered}",
        "How far the answer follows when one symbol is exchanged in the residual stream at a role "
        "(column) before a layer (row); the probability that the logit lens gives to a symbol "
        "there, among the words of all chains; and whether the last look-up finds its line by "
        "position, by word or by a pointer. Below 0 drawn as 0, above 1 as 1.",
        sum(rows) * (high + 0.25) + 1.3,
        columns=2,
    )
    grid = figure.subplots(sum(rows), across, squeeze=False, sharey=True)
    first = 0
    for count, (what, panels, columns) in zip(rows, groups, strict=True):
        part = grid[first : first + count]
        for axes, (name, values) in zip(part.flat, panels.items(), strict=False):
            image = _panel(axes, values, found, columns)
            axes.set_title(name)
        for axes in part.flat[len(panels) :]:
            axes.set_axis_off()
        figure.colorbar(image, ax=part.ravel().tolist(), label=what, aspect=15 * count)
        first += count
    figure.supylabel("before layer")
    return figure


def _panel(axes: Axes, values: np.ndarray, found: LmFindings, columns: list[str]) -> AxesImage:
    """Draw values [column, layer] as a map, layers upward."""
    image = shade(axes, values.T, origin="lower", interpolation="nearest")
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=SMALL)
    step = -(-len(found.layers) // 6)  # more labels would touch
    at = range(0, len(found.layers), step)
    axes.set_yticks(list(at), [str(found.layers[n]) for n in at])
    return image


def _name(role: Role) -> str:
    """Return a role's name; the rest of a fact's line is "line" with the fact's number."""
    return f"line {role.fact}" if role.kind == "line" else str(role)
