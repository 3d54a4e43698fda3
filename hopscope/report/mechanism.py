"""How a language model comes to its answer: maps of roles by layers, and the same in words."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from hopscope.facts import Role
from hopscope.llm.exchange import ON
from hopscope.llm.mechanism import LlmFindings, Proof
from hopscope.report.terminal import sparkline

SHOWN = 0.05
"""A role that no answer follows by so much is left out."""
PANEL, ROW = 0.42, 0.17
"""Inches per role and per layer."""


def told_roles(found: LlmFindings) -> list[int]:
    """The numbers of the roles that some answer follows somewhere."""
    return [
        number
        for number, _ in enumerate(found.roles)
        if any(abs(e.mean) >= SHOWN for by in found.shares.values() for e in by[number])
    ]


def exchanged(name: str) -> str:
    """What is exchanged, in words.

    >>> exchanged("x1"), exchanged("x1…")
    ('x1, wherever it stands', 'x1, as a value alone')
    """
    if name.endswith(ON):
        return f"{name.removesuffix(ON)}, as a value alone"
    return f"{name}, wherever it stands"


def role_rows(found: LlmFindings) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of a table: for each role, how far answers follow, layer by layer."""
    rows = []
    for number in told_roles(found):
        bars = [_bars(found, name, number) for name in found.shares]
        rows.append([str(found.roles[number]), *bars])
    return ["role", *found.shares], rows


def _bars(found: LlmFindings, name: str, role: int) -> str:
    values = [each.mean for each in found.shares[name][role]]
    return sparkline(values, width=len(values)) if max(values) >= SHOWN else "·"


def lens_rows(found: LlmFindings) -> tuple[list[str], list[list[str]]]:
    """For each role that holds something, the logit lens at its best."""
    rows = []
    for number in told_roles(found):
        for symbol, seen in found.lens.items():
            chance = seen.probability[number]
            if np.isfinite(chance).all() and chance.max() >= 0.5:
                best = int(chance.argmax())
                rows.append(
                    [str(found.roles[number]), symbol, str(found.layers[best]),
                     f"{chance[best]:.2f}", f"{seen.rank[number, best]:.0f}"]
                )  # fmt: skip
    return ["role", "symbol", "clearest before layer", "probability", "rank"], rows


def proof_rows(proofs: list[Proof]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of a table: the circuit knocked out, and alone."""
    columns = ["exchange", "circuit of the donor", "random rows", "draw by draw", "as far",
               "all but the circuit", "everything"]  # fmt: skip
    rows = [
        [
            exchanged(each.name), str(each.knocked),
            str(each.drawn), f"{min(each.random):.3f} … {max(each.random):.3f}",
            f"{each.beaten} of {len(each.random)}", str(each.alone), str(each.everything),
        ]
        for each in proofs
    ]  # fmt: skip
    return columns, rows


def confirmed_rows(found: LlmFindings) -> tuple[list[str], list[list[str]]]:
    """What roles hold, on fresh questions."""
    rows = [
        [exchanged(its.exchange), str(its.role), str(its.layer), str(its.share)]
        for its in found.confirmed
    ]
    return ["exchange", "role", "before layer", "the answer follows"], rows


def mechanism_figure(found: LlmFindings) -> Figure:
    """Above, how far answers follow the stream at each role before each layer, a panel for each
    exchange; below, what the logit lens sees there.
    """
    roles, seen = told_roles(found), found.lens
    columns, height = max(len(found.shares), len(seen)), max(1.6, ROW * len(found.layers))
    size = (columns * (PANEL * len(roles) + 0.5) + 1.6, 2 * height + 2.8)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(2, columns, squeeze=False)
    for axes, (name, shares) in zip(grid[0], found.shares.items(), strict=False):
        values = np.array([[each.mean for each in shares[role]] for role in roles])
        image = _panel(axes, values, found, roles)
        axes.set_title(exchanged(name), fontsize=8)
    _scale(figure, image, grid[0], "how far the answer follows")
    for axes, (symbol, its) in zip(grid[1], seen.items(), strict=False):
        lit = _panel(axes, its.probability[roles], found, roles)
        axes.set_title(f"logit lens: {symbol}", fontsize=8)
    _scale(figure, lit, grid[1], "probability among the chains' words")
    for axes in (*grid[0, len(found.shares) :], *grid[1, len(seen) :]):
        axes.set_axis_off()
    title = f"{found.recipe.model} on {found.recipe.prompts.label}: {found.answered}"
    figure.suptitle(title, fontsize=9)
    return figure


def _scale(figure: Figure, image: AxesImage, row: np.ndarray, what: str) -> None:
    """What the colours of a row of panels mean."""
    bar = figure.colorbar(image, ax=row.tolist(), shrink=0.9)
    bar.set_label(what, fontsize=7)
    bar.ax.tick_params(labelsize=7)


def _panel(axes: Axes, values: np.ndarray, found: LlmFindings, roles: list[int]) -> AxesImage:
    """[role, layer] as a map, layers upward."""
    image = axes.imshow(
        values.T, origin="lower", aspect="auto", cmap="viridis", vmin=0, vmax=1,
        interpolation="nearest",
    )  # fmt: skip
    names = [label(found.roles[role]) for role in roles]
    axes.set_xticks(range(len(roles)), names, rotation=60, ha="right", fontsize=7)
    step = max(1, len(found.layers) // 8)
    at = range(0, len(found.layers), step)
    axes.set_yticks(list(at), [str(found.layers[n]) for n in at], fontsize=7)
    axes.set_ylabel("before layer", fontsize=7)
    return image


def label(role: Role) -> str:
    """A role's name; the rest of a fact's line is told by the number of its fact."""
    return f"line {role.fact}" if role.kind == "line" else str(role)
