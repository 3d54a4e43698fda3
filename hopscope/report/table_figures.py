"""Figures of the papers, drawn from tables of results alone: which target has which."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from hopscope.circuits import Circuit, RoleMaps
from hopscope.circuits.emergence import Emergence
from hopscope.configs import Retrieval
from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT
from hopscope.papers.musat.curriculum_claims import LEARNED
from hopscope.papers.musat.reading_map import nearest, tried
from hopscope.papers.musat.rows import (
    AnswerRow,
    ChangedRow,
    CircuitRow,
    DepthRow,
    LossRow,
    PlaceRow,
)
from hopscope.papers.table import Table
from hopscope.report.chen import choices_figures, growth_figures, settings_figures, training_figures
from hopscope.report.circuit import circuit_figure
from hopscope.report.curves import FULL_SCALE
from hopscope.report.depth import shared_information
from hopscope.report.emergence import emergence_figure, order_figure
from hopscope.report.look import COLOURS, DIM, INK, LINES, Picture, drawn, picture, width
from hopscope.report.maps import role_maps_figure
from hopscope.report.places import changed_figure, place_figure
from hopscope.report.readings import batch_figure, law_figure, map_figure
from hopscope.report.symbols import counted, symbol_name

Drawn = tuple[str, Picture]
"""A short name, and a figure."""
PANEL = 1.55
"""Inches of a panel of courses, at least."""
D_LAYERS = 24
"""The number of layers by which transformer D is recognised."""


def figures(table: Table, others: Callable[[str], Table | None] = lambda _: None) -> list[Drawn]:
    """All figures of a target; what shows two targets stands with the second."""
    draw = FIGURES.get(table.target)
    found = draw(table) if draw and table.rows else []
    with_ = others("musat/fig4-ic") if table.target == "musat/fig4-nonic" else None
    if with_ is not None and with_.rows and table.rows:
        found.insert(0, ("curriculum", _curriculum(with_, table)))
    return found


@drawn
def _curriculum(with_: Table, without: Table) -> Picture:
    """Figure 4, left."""
    figure = picture(
        "with and without implicit curriculum",
        "Final validation loss by the number of layers: a dot for each model, a line through the "
        "means; dotted: guessing.",
        2.6,
    )
    axes = figure.subplots()
    for colour, (name, table) in zip(
        COLOURS, (("with", with_), ("without", without)), strict=False
    ):
        ends: dict[int, list[float]] = {}
        rows = table.of(LossRow)
        for row in rows:
            ends.setdefault(row.layers, []).append(row.loss)
            axes.plot(row.layers, row.loss, ".", alpha=0.4, color=colour)
        depths = sorted(ends)
        label = f"{name} curriculum, D = {rows[0].hops}"
        axes.plot(depths, [_mean(ends[depth]) for depth in depths], "o-", color=colour, label=label)
    axes.axhline(without.of(LossRow)[0].guess, color=DIM, linestyle=":", label="guess")
    axes.set(xlabel="layers", ylabel="final validation loss, all hops", ylim=(0, None))
    axes.legend()
    return figure


def _levels(table: Table) -> list[Drawn]:
    """Figure 4, right: final losses by number of layers, and how they came about."""
    rows = table.of(LossRow)
    return [("layers", _by_layers(rows)), ("courses", _courses(rows))]


@drawn
def _by_layers(rows: Sequence[LossRow]) -> Picture:
    names = _hops(rows[0])
    figure = picture(
        f"final loss of each hop, D = {rows[0].hops}",
        "Final validation loss of each hop by the number of layers: a dot for each model, a line "
        "through the means; dotted: guessing.",
        2.6,
    )
    axes = figure.subplots()
    depths = sorted({row.layers for row in rows})
    for hop, name in enumerate(names):
        means = [_mean(row.final[hop] for row in rows if row.layers == d) for d in depths]
        axes.plot(depths, means, "o-", color=COLOURS[hop % LINES], label=name)
        for row in rows:
            axes.plot(row.layers, row.final[hop], ".", alpha=0.4, color=COLOURS[hop % LINES])
    if len(names) > 1:
        totals = [_mean(row.loss for row in rows if row.layers == d) for d in depths]
        axes.plot(depths, totals, "--", color=INK, label="all hops")
    axes.axhline(rows[0].guess, color=DIM, linestyle=":", label="guess")
    highest = max(rows[0].guess, *(max(row.final) for row in rows))
    axes.set(xlabel="layers", ylabel="final validation loss", xticks=depths)
    axes.set_ylim(0, 1.1 * highest)
    axes.legend()
    return figure


def _by_depth(table: Table) -> list[Drawn]:
    """Figure 4, right, and how many hops each model learned, beside the exact law."""
    return [*_levels(table), ("law", law_figure(table.of(LossRow)))]


def _batches(table: Table) -> list[Drawn]:
    return [("plateau", batch_figure(table.of(LossRow)))]


def _places(table: Table) -> list[Drawn]:
    return [("waits", place_figure(table.of(PlaceRow)))]


def _changed(table: Table) -> list[Drawn]:
    return [("second", changed_figure(table.of(ChangedRow)))]


def _readings(table: Table) -> list[Drawn]:
    found = tried([table])
    one, row = nearest(found, [claim.judge for claim in AS_WE_TAKE_IT])
    circuit = Circuit.from_dict(row.circuit)
    of = f"nearest to figure 5: {one.reading}, seed {row.seed}"
    shown = [("nearest", circuit_figure(circuit, None, of))] if circuit.paths else []
    return [("map", map_figure(found)), *shown]


@drawn
def _courses(rows: Sequence[LossRow]) -> Picture:
    """The loss of every hop during training, a panel per model."""
    across = min(int(width(2) / PANEL), len(rows))
    down = -(-len(rows) // across)
    trained = " Faint: training losses." if any(row.course.train for row in rows) else ""
    figure = picture(
        "losses during training",
        f"Validation loss of each hop, a panel for each model; dotted: {LEARNED:g}, below which a "
        f"hop is learned.{trained}",
        1.3 * down + 0.8,
        columns=2,
    )
    panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, row in zip(panels, rows, strict=False):
        _course(axes, row)
    for axes in panels[len(rows) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(rows) - across) : len(rows)]:
        axes.tick_params(labelbottom=True)  # what is below it may be empty
        axes.set_xlabel("step")
    figure.supylabel("loss")
    known = [axes.get_legend_handles_labels() for axes in panels]
    most = max(known, key=lambda found: len(found[0]))
    figure.legend(*most, loc="outside lower center", ncols=8 if across > 2 else 4)
    return figure


def _course(axes: Axes, row: LossRow) -> None:
    """Validation in full, training faint (where the row has it)."""
    course = row.course
    for number, name in enumerate(_hops(row)):
        colour = COLOURS[number % LINES]
        if course.train is not None:
            axes.plot(course.steps, course.train[number], color=colour, alpha=0.35, linewidth=0.8)
        axes.plot(course.steps, course.losses[number], color=colour, linewidth=1, label=name)
    axes.axhline(LEARNED, color=DIM, linestyle=":", linewidth=0.8)
    axes.set_ylim(0, FULL_SCALE * row.guess)
    axes.set_title(_model(row))


def _model(row: LossRow) -> str:
    """Layers and seed; of transformer D, which comes in several readings, the reading below."""
    told = [f"{counted(row.layers, 'layer')}, seed {row.seed}"]
    if row.layers == D_LAYERS:
        reading = ["fan-in"] * (row.init == "fan-in") + ["per pair"] * (row.position == "pair")
        told += [f"{row.examples:,} examples", *filter(None, [", ".join(reading)])]
    return "\n".join(told)


def _hops(row: LossRow) -> list[str]:
    """What the losses of a row are of."""
    asked = range(1, len(row.final) + 1) if row.curriculum else [row.hops]
    return [symbol_name(f"x{hop}") for hop in asked]


def _orders(table: Table) -> list[Drawn]:
    return [("courses", _courses(table.of(LossRow)))]


def _circuits(table: Table) -> list[Drawn]:
    """Figure 5, appendix C."""
    found: list[Drawn] = []
    for number, row in enumerate(table.of(CircuitRow)):
        name, circuit = _letter(number, row), Circuit.from_dict(row.circuit)
        letter = name.partition("-")[0].upper()
        who, story = f"transformer {letter}: {', '.join(_model(row).splitlines())}", _story(row)
        if circuit.paths:
            found.append((f"circuit-{name}", circuit_figure(circuit, story, f"circuit of {who}")))
        maps = RoleMaps.from_dict(row.maps.model_dump(mode="json"))
        drawn_maps = role_maps_figure(maps, set(row.useful), f"role maps of {who}")
        found.append((f"maps-{name}", drawn_maps))
        if story is not None:
            found.append((f"emergence-{name}", emergence_figure(story, f"emergence in {who}")))
            found.append((f"order-{name}", order_figure(story, f"order in {who}")))
    return [*found, ("courses", _courses(table.of(LossRow)))]


def _letter(number: int, row: CircuitRow) -> str:
    """A, B and C have 12 layers; D comes in three readings."""
    if row.layers == D_LAYERS:
        weights = "" if row.init in ("gpt2", None) else f"-{row.init}"
        seed = f"-seed-{row.seed}" if row.seed else ""
        return f"d-{row.examples}{weights}{seed}"
    return "abc"[number] if row.layers == 12 else f"{row.layers}x{row.heads}-{number}"


def _story(row: CircuitRow) -> Emergence | None:
    """How the row's circuit emerged; when hops were learned stands in every row of losses."""
    kept = row.emergence
    if kept is None:
        return None
    return Emergence.from_dict(kept.model_dump(mode="json") | {"learned_at": row.crossed})


def _depths(table: Table) -> list[Drawn]:
    """Figure 3, and the three counts of layers."""
    shared = shared_information(Retrieval(hops=5).graph())
    return [("layers", _fewest(table.of(DepthRow))), ("shared", shared)]


@drawn
def _fewest(rows: Sequence[DepthRow]) -> Picture:
    figure = picture(
        "fewest layers for D hops",
        "The fewest layers that D hops need: with causal attention and with attention in both "
        "directions, exactly; and as theorem 1 of the paper says.",
        2.4,
    )
    axes = figure.subplots()
    hops = [row.hops for row in rows]
    levels = {
        "causal, exact": [row.causal for row in rows],
        "both directions, exact": [row.bidirectional for row in rows],
        "theorem 1": [row.theorem_1 for row in rows],
    }
    for colour, (label, layers) in zip(COLOURS, levels.items(), strict=False):
        dashed = "--" if label == "theorem 1" else "-"
        axes.step(hops, layers, where="mid", color=colour, label=label, linestyle=dashed)
    axes.set(xlabel="hops D", ylabel="layers", ylim=(0, None))
    axes.legend()
    return figure


def _answers(table: Table) -> list[Drawn]:
    """Figure 2, from rows."""
    from hopscope.report.llm import results_figure

    by_model: dict[str, list[AnswerRow]] = {}
    for row in table.of(AnswerRow):
        by_model.setdefault(row.asked, []).append(row)
    return [("accuracy", results_figure(by_model))]


def _mean(values: object) -> float:
    return float(np.mean(list(values)))  # type: ignore[call-overload]


FIGURES: Mapping[str, Callable[[Table], list[Drawn]]] = {
    "musat/depth": _depths,
    "musat/fig2": _answers,
    "musat/fig4-ic": _by_depth,
    "musat/fig4-seeds": _by_depth,
    "musat/fig4-nonic": _levels,
    "musat/fig4-nonic-seeds": _levels,
    "musat/order": _orders,
    "musat/depth-small": _by_depth,
    "musat/fig5": _circuits,
    "musat/readings": _readings,
    "musat/readings-long": _readings,
    "musat/fig7": _circuits,
    "musat/fig7-seeds": _circuits,
    "musat/fig7-pair": _circuits,
    "musat/batches": _batches,
    "musat/places": _places,
    "musat/places-changed": _changed,
    "chen/training": training_figures,
    "chen/growth": growth_figures,
    "chen/choices": choices_figures,
    "chen/settings": settings_figures,
}
