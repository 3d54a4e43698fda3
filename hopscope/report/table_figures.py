"""Figures of the papers, drawn from tables of results alone: which target has which."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopscope.circuits import Circuit, RoleMaps
from hopscope.circuits.emergence import Emergence
from hopscope.configs import Retrieval
from hopscope.papers.musat.reading_map import tried
from hopscope.papers.musat.rows import AnswerRow, CircuitRow, DepthRow, LossRow
from hopscope.papers.table import Table
from hopscope.report.chen import choices_figures, growth_figures, settings_figures, training_figures
from hopscope.report.circuit import circuit_figure
from hopscope.report.curves import COLOURS, FULL_SCALE
from hopscope.report.depth import shared_information
from hopscope.report.emergence import emergence_figure, order_figure
from hopscope.report.maps import role_maps_figure
from hopscope.report.readings import batch_figure, law_figure, map_figure

Drawn = tuple[str, str, Figure]
"""A short name, an alternative text, a figure."""
D_LAYERS = 24
"""The number of layers by which transformer D is recognised."""


def figures(table: Table, others: Callable[[str], Table | None] = lambda _: None) -> list[Drawn]:
    """All figures of a target; what shows two targets stands with the second."""
    draw = FIGURES.get(table.target)
    found = draw(table) if draw and table.rows else []
    with_ = others("musat/fig4-ic") if table.target == "musat/fig4-nonic" else None
    if with_ is not None and with_.rows and table.rows:
        said = "mean final loss by number of layers, with and without implicit curriculum"
        found.insert(0, ("curriculum", said, _curriculum(with_, table)))
    return found


def _curriculum(with_: Table, without: Table) -> Figure:
    """Figure 4, left."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
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
    axes.axhline(without.of(LossRow)[0].guess, color="#999999", linestyle=":", label="guess")
    axes.set(xlabel="layers", ylabel="final validation loss, all hops", ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _levels(table: Table) -> list[Drawn]:
    """Figure 4, right: final losses by number of layers, and how they came about."""
    rows = table.of(LossRow)
    names = _hops(rows[0])
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    depths = sorted({row.layers for row in rows})
    for hop, name in enumerate(names):
        means = [_mean(row.final[hop] for row in rows if row.layers == d) for d in depths]
        axes.plot(depths, means, "o-", color=COLOURS[hop % len(COLOURS)], label=name, markersize=4)
        for row in rows:
            axes.plot(row.layers, row.final[hop], ".", alpha=0.4, color=COLOURS[hop % len(COLOURS)])
    if len(names) > 1:
        totals = [_mean(row.loss for row in rows if row.layers == d) for d in depths]
        axes.plot(depths, totals, "k--", linewidth=1, label="all")
    axes.axhline(rows[0].guess, color="#999999", linestyle=":", label="guess")
    highest = max(rows[0].guess, *(max(row.final) for row in rows))
    axes.set(xlabel="layers", ylabel="final validation loss", xticks=depths)
    axes.set_ylim(0, 1.1 * highest)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    said = f"final validation loss of each hop for models of {depths[0]} to {depths[-1]} layers"
    return [("layers", said, figure), ("courses", "losses during training", _courses(rows))]


def _by_depth(table: Table) -> list[Drawn]:
    """Figure 4, right, and how many hops each model learned, beside the exact law."""
    said = "how many hops models of each depth learn, and the most that depth allows"
    return [*_levels(table), ("law", said, law_figure(table.of(LossRow)))]


def _batches(table: Table) -> list[Drawn]:
    said = "when small models learn each hop, and where they end, by the size of the batch"
    return [("plateau", said, batch_figure(table.of(LossRow)))]


def _readings(table: Table) -> list[Drawn]:
    said = "for how many models each claim holds, under each reading of the paper"
    return [("map", said, map_figure(tried([table])))]


def _courses(rows: Sequence[LossRow]) -> Figure:
    """The loss of every hop during training, a panel per model."""
    columns = min(4, len(rows))
    lines = -(-len(rows) // columns)
    figure = Figure(figsize=(2.6 * columns, 2.0 * lines + 0.3), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, row in zip(panels, rows, strict=False):
        _course(axes, row)
    for axes in panels[len(rows) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(rows) - columns) : len(rows)]:
        axes.tick_params(labelbottom=True)  # what is below it may be empty
    known = [axes.get_legend_handles_labels() for axes in panels]
    most = max(known, key=lambda found: len(found[0]))
    figure.legend(*most, loc="outside lower center", ncols=8, fontsize=8, frameon=False)
    return figure


def _course(axes: Axes, row: LossRow) -> None:
    """Validation in full, training dotted (where the row has it)."""
    course, several = row.course, row.layers == D_LAYERS
    for number, name in enumerate(_hops(row)):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(course.steps, course.losses[number], color=colour, linewidth=1, label=name)
        if course.train is not None:
            label = "training" if number == 0 else None
            axes.plot(
                course.steps, course.train[number], ":", color=colour, linewidth=1, label=label
            )
    axes.axhline(0.5, color="#999999", linestyle=":", linewidth=0.8)
    axes.set_ylim(0, FULL_SCALE * row.guess)
    title = f"{row.layers} layers, seed {row.seed}"
    if several:
        title += f", {row.examples:,} examples" + ", fan-in" * (row.init == "fan-in")
    axes.set_title(title, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def _hops(row: LossRow) -> list[str]:
    """What the losses of a row are of."""
    asked = range(1, len(row.final) + 1) if row.curriculum else [row.hops]
    return [f"$x_{{{hop}}}$" for hop in asked]


def _orders(table: Table) -> list[Drawn]:
    return [
        (
            "courses",
            "losses of each hop during training, for every seed",
            _courses(table.of(LossRow)),
        )
    ]


def _circuits(table: Table) -> list[Drawn]:
    """Figure 5, appendix C."""
    found = []
    for number, row in enumerate(table.of(CircuitRow)):
        name, circuit = _letter(number, row), Circuit.from_dict(row.circuit)
        story = _story(row)
        if circuit.paths:
            drawn = circuit_figure(circuit, story)
            found.append((f"circuit-{name}", f"circuit of transformer {name}", drawn))
        maps = role_maps_figure(
            RoleMaps.from_dict(row.maps.model_dump(mode="json")), set(row.useful)
        )
        found.append((f"maps-{name}", f"attention of every head of transformer {name}", maps))
        if story is not None:
            found.append(
                (f"emergence-{name}", "attention along each path", emergence_figure(story))
            )
            found.append((f"order-{name}", "when each path emerged", order_figure(story)))
    return [*found, ("courses", "losses of each hop during training", _courses(table.of(LossRow)))]


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
    rows = table.of(DepthRow)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    hops = [row.hops for row in rows]
    levels = {
        "causal, exact": [row.causal for row in rows],
        "both directions, exact": [row.bidirectional for row in rows],
        "theorem 1": [row.theorem_1 for row in rows],
    }
    for colour, (label, layers) in zip(COLOURS, levels.items(), strict=False):
        axes.step(hops, layers, where="mid", color=colour, label=label)
    axes.set(xlabel="hops D", ylabel="layers", ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    shared = shared_information(Retrieval(hops=5).graph())
    return [
        ("layers", "fewest layers for D hops: causal, bidirectional, and theorem 1", figure),
        ("shared", "which positions share information before any layer, D = 5", shared),
    ]


def _answers(table: Table) -> list[Drawn]:
    """Figure 2, from rows."""
    from hopscope.report.llm import results_figure

    by_model: dict[str, list[AnswerRow]] = {}
    for row in table.of(AnswerRow):
        by_model.setdefault(row.asked, []).append(row)
    return [("accuracy", "accuracy by hops and by formulation", results_figure(by_model))]


def _mean(values: object) -> float:
    return float(np.mean(list(values)))  # type: ignore[call-overload]


FIGURES: Mapping[str, Callable[[Table], list[Drawn]]] = {
    "musat/depth": _depths,
    "musat/fig2": _answers,
    "musat/fig4-ic": _by_depth,
    "musat/fig4-seeds": _by_depth,
    "musat/fig4-nonic": _levels,
    "musat/order": _orders,
    "musat/fig5": _circuits,
    "musat/readings": _readings,
    "musat/readings-long": _readings,
    "musat/fig7": _circuits,
    "musat/batches": _batches,
    "chen/training": training_figures,
    "chen/growth": growth_figures,
    "chen/choices": choices_figures,
    "chen/settings": settings_figures,
}
