"""How a language model comes to its answer: maps of roles by layers, and the same in words."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from hopscope.facts import Role
from hopscope.llm.exchange import ON
from hopscope.llm.mechanism import LlmFindings, MechanismRun, Proof
from hopscope.report.look import SMALL, Picture, amounts, drawn, picture, width
from hopscope.report.terminal import sparkline

SHOWN = 0.05
"""A role that no answer follows by so much is left out."""
COLUMN, ROW = 0.14, 0.11
"""Inches per role, at least, and per layer."""
PANEL, BESIDE = 1.9, 0.9
"""Inches of a panel, at least; and of what stands beside all of them."""


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
            exchanged(each.name), str(each.knocked), str(each.drawn),
            f"{min(each.random):.3f} … {max(each.random):.3f}" if each.random else "–",
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


def run_figure(run: MechanismRun) -> Picture:
    """What a run found."""
    return mechanism_figure(run.findings)


@drawn
def mechanism_figure(found: LlmFindings) -> Picture:
    """First, how far answers follow the stream at each role before each layer, a panel for each
    exchange; then what the logit lens sees there.
    """
    roles = told_roles(found) or [*range(len(found.roles))]
    seen = found.lens
    room = int((width(2) - BESIDE) / max(COLUMN * len(roles), PANEL))
    across = max(1, min(room, max(len(found.shares), len(seen))))
    rows = [-(-len(panels) // across) for panels in (found.shares, seen)]
    high = max(1.2, ROW * len(found.layers))
    title = f"{found.recipe.model} on {found.recipe.prompts.label}: {found.answered}"
    figure = picture(
        title,
        "How far the answer follows when one symbol is exchanged in the residual stream at a role "
        "(column) before a layer (row); and the probability that the logit lens gives to a symbol "
        "there, among the words of all chains.",
        sum(rows) * (high + 0.25) + 1.3,
        columns=2,
    )
    grid = figure.subplots(sum(rows), across, squeeze=False, sharex=True, sharey=True)
    above, below = grid[: rows[0]], grid[rows[0] :]
    for axes, (name, shares) in zip(above.flat, found.shares.items(), strict=False):
        values = np.array([[each.mean for each in shares[role]] for role in roles])
        image = _panel(axes, values, found, roles)
        axes.set_title(exchanged(name))
    _scale(figure, image, above, "how far the answer follows")
    for axes, (symbol, its) in zip(below.flat, seen.items(), strict=False):
        lit = _panel(axes, its.probability[roles], found, roles)
        axes.set_title(f"logit lens: {symbol}")
    _scale(figure, lit, below, "probability")
    for axes in (*above.flat[len(found.shares) :], *below.flat[len(seen) :]):
        axes.set_axis_off()
    for column in grid.T:
        lowest = [axes for axes in column if axes.axison][-1]
        lowest.tick_params(labelbottom=True)  # there may be no panel below
    figure.supylabel("before layer")
    return figure


def _scale(figure: Picture, image: AxesImage, rows: np.ndarray, what: str) -> None:
    """What the colours of rows of panels mean."""
    figure.colorbar(image, ax=rows.ravel().tolist(), label=what, aspect=15 * len(rows))


def _panel(axes: Axes, values: np.ndarray, found: LlmFindings, roles: list[int]) -> AxesImage:
    """[role, layer] as a map, layers upward."""
    image = axes.imshow(
        values.T,
        origin="lower",
        aspect="auto",
        cmap=amounts(),
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    names = [label(found.roles[role]) for role in roles]
    axes.set_xticks(range(len(roles)), names, rotation=90, fontsize=SMALL)
    step = max(1, len(found.layers) // 8)
    at = range(0, len(found.layers), step)
    axes.set_yticks(list(at), [str(found.layers[n]) for n in at])
    return image


def label(role: Role) -> str:
    """A role's name; the rest of a fact's line is told by the number of its fact."""
    return f"line {role.fact}" if role.kind == "line" else str(role)
