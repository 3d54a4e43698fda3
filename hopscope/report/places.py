"""Figures on facts that stand in order or shuffled: what their places do to the second hop."""

from collections.abc import Sequence
from typing import TypeVar

from matplotlib.axes import Axes

from hopscope.facts import symbol_name
from hopscope.papers.musat.emergence_claims import QUICKLY
from hopscope.papers.musat.rows import ChangedRow, PlaceRow
from hopscope.report.look import COLOURS, DIM, PAPER, WIDTHS, Picture, drawn, picture, width

SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Shares of steps that have a tick."""
IN_WORDS = {"backward": "in order", "shuffled": "shuffled"}
"""The orders that are compared."""
SIDES = tuple(IN_WORDS)
BESIDE = 0.03
"""How far models of a kind stand apart from those of the next."""
Known = TypeVar("Known", PlaceRow, ChangedRow)


@drawn
def place_figure(rows: Sequence[PlaceRow]) -> Picture:
    """How long the second hop takes, by what is known of the first hop at other places."""
    first, second = symbol_name("x1"), symbol_name("x2")
    wide = width(2) > WIDTHS[1]
    figure = picture(
        "what places do to the second hop",
        f"Across: the loss of {first} with facts shuffled, when it has just been learned. Up: "
        f"steps from then to {second}, as a share of those to {first}. A point for each model that "
        f"learns both; dotted: a quarter, up to which {second} counts as following quickly.",
        2.8 if wide else 4.2,
        columns=2,
    )
    axes = figure.subplots()
    for number, (kind, models) in enumerate(_by_kind(rows).items()):
        known = [(row.shuffled[0], wait / start) for row in models for start, wait in _waits(row)]
        axes.plot(
            *zip(*known, strict=True) if known else ([], []),
            "o" if models[0].order == "shuffled" else "s",
            color=COLOURS[number % len(COLOURS)],
            alpha=0.8,
            label=f"{kind} ({len(known)} of {len(models)})",
        )
    axes.axhline(QUICKLY, color=DIM, linestyle=":")
    axes.set(xlabel=f"loss of {first} with facts shuffled", yscale="log", xlim=(0, None))
    axes.set_ylabel(f"steps from {first} to {second}, as a share")
    axes.set_yticks(SHARES, [f"{each:.0%}" for each in SHARES])
    axes.minorticks_off()
    figure.legend(loc="outside right center" if wide else "outside lower center")
    return figure


def _waits(row: PlaceRow) -> list[tuple[int, int]]:
    """The steps to the first hop, and from there to the second, if both were learned."""
    return [row.wait] if row.wait is not None else []


@drawn
def changed_figure(rows: Sequence[ChangedRow]) -> Picture:
    """How soon models that know the first hop learn the second, with facts in order or shuffled."""
    first, second = symbol_name("x1"), symbol_name("x2")
    most = max(row.steps for row in rows)
    wide = width(2) > WIDTHS[1]
    figure = picture(
        "the second hop, by how the first was learned",
        f"Models that have just learned {first}, on the left with facts in order and on the right "
        f"with facts shuffled, learn on in both orders: steps until they know {second}. A line for "
        f"each model. Hollow: not within {most:,} steps.",
        2.8 if wide else 5.2,
        columns=2,
    )
    sides = figure.subplots(*((1, 2) if wide else (2, 1)), sharey=True)
    for number, (kind, models) in enumerate(_by_kind(rows, ordered=False).items()):
        for axes, order in zip(sides, SIDES, strict=True):
            known = [row for row in models if row.order == order]
            _two_ends(axes, known, number)
        sides[0].plot([], [], "o-", color=COLOURS[number % len(COLOURS)], label=kind)
    for axes, order in zip(sides, SIDES, strict=True):
        axes.set_xticks(range(len(SIDES)), [f"then {IN_WORDS[side]}" for side in SIDES])
        axes.set(title=f"{first} learned with facts {IN_WORDS[order]}", xlim=(-0.4, 1.4))
        axes.set_ylim(0, 1.05 * most)
    for axes in sides[: 1 if wide else 2]:
        axes.set_ylabel(f"steps until {second} is known")
    figure.legend(loc="outside lower center", ncols=2 if wide else 1)
    return figure


def _two_ends(axes: Axes, rows: Sequence[ChangedRow], number: int) -> None:
    """A line for each model, from one order of its facts to the other."""
    colour = COLOURS[number % len(COLOURS)]
    models: dict[tuple[str | None, int], list[ChangedRow]] = {}
    for row in rows:
        models.setdefault((row.run, row.seed), []).append(row)
    for ends in models.values():
        steps = [row.steps if row.second is None else row.second for row in ends]
        places = [SIDES.index(row.changed) + BESIDE * (number - 1) for row in ends]
        axes.plot(places, steps, "-", color=colour, alpha=0.4)
        for row, place, height in zip(ends, places, steps, strict=True):
            inside = colour if row.second is not None else PAPER
            axes.plot(place, height, "o", color=colour, markerfacecolor=inside, alpha=0.8)


def _by_kind(rows: Sequence[Known], *, ordered: bool = True) -> dict[str, list[Known]]:
    """Models by how deep they are, by their code of places and (`ordered`) by how facts stood."""
    found: dict[str, list[Known]] = {}
    for row in rows:
        order = f", {IN_WORDS[row.order]}" if ordered else ""
        kind = f"{row.layers} layers{order}, code per {row.position}, base {row.base:,.0f}"
        found.setdefault(kind, []).append(row)
    return found
