"""Figures of the papers, drawn only from tables of results, for each experiment."""

from collections.abc import Callable, Mapping, Sequence

from hopscope.circuits import Circuit
from hopscope.configs import Retrieval
from hopscope.papers.chen.rows import ChoiceRow, GrowthRow, SettingRow
from hopscope.papers.musat.circuit_claims import by_variant, nearest
from hopscope.papers.musat.rows import (
    AnswerRow,
    CircuitRow,
    DepthRow,
    LossRow,
    longest,
)
from hopscope.papers.results import ResultsTable
from hopscope.plots.chen import choices_figure, growth_figure, settings_figure, training_figures
from hopscope.plots.circuit import circuit_figure
from hopscope.plots.depth import shared_information
from hopscope.plots.emergence import emergence_figure, order_figure
from hopscope.plots.look import COLOURS, NamedPicture, Picture, drawn, picture
from hopscope.plots.maps import role_maps_figure
from hopscope.plots.sweeps import (
    D_LAYERS,
    by_depth,
    courses_figure,
    curriculum_figure,
    final_loss_figures,
    map_figure,
    model_name,
)


def figures(
    table: ResultsTable, others: Callable[[str], ResultsTable | None] = lambda _: None
) -> list[NamedPicture]:
    """Draw all figures of an experiment; a figure of two experiments belongs to the second."""
    if not table.rows or table.experiment not in FIGURES:
        return []
    known = others("musat/fig4-ic") if table.experiment in BESIDE_FIGURE_4 else None
    if known is not None and known.rows:
        return BESIDE_FIGURE_4[table.experiment](table, known)
    return FIGURES[table.experiment](table)


def _beside_curriculum(table: ResultsTable, with_: ResultsTable) -> list[NamedPicture]:
    """Draw both sides of figure 4."""
    rows = table.of(LossRow)
    return [("curriculum", curriculum_figure(with_.of(LossRow), rows)), *final_loss_figures(rows)]


def _all_seeds(table: ResultsTable, first: ResultsTable) -> list[NamedPicture]:
    """Draw all models of two tables by depth, and the losses in training of the second table."""
    rows = table.of(LossRow)
    return by_depth(longest([*first.of(LossRow), *rows]), rows)


def _variants(table: ResultsTable) -> list[NamedPicture]:
    found = by_variant(table.rows)
    if not any(each.of_the_paper for each in found):
        return [("map", map_figure(found))]
    one, row = nearest(found)
    circuit = Circuit.from_dict(row.circuit)
    of = f"nearest to figure 5: {one.variant}, seed {row.seed}"
    shown = [("nearest", circuit_figure(circuit, None, of))] if circuit.paths else []
    return [("map", map_figure(found)), *shown]


def _circuits(table: ResultsTable) -> list[NamedPicture]:
    """Draw figure 5 and appendix C: the circuit, maps and emergence of each model, and losses."""
    found: list[NamedPicture] = []
    for number, row in enumerate(table.of(CircuitRow)):
        name, circuit = _letter(number, row), Circuit.from_dict(row.circuit)
        letter = name.partition("-")[0].upper()
        who, story = f"transformer {letter}: {', '.join(model_name(row).splitlines())}", row.story
        if circuit.paths:
            found.append((f"circuit-{name}", circuit_figure(circuit, story, f"circuit of {who}")))
        drawn_maps = role_maps_figure(row.role_maps, set(row.useful), f"role maps of {who}")
        found.append((f"maps-{name}", drawn_maps))
        if story is not None:
            found.append((f"emergence-{name}", emergence_figure(story, f"emergence in {who}")))
            found.append((f"order-{name}", order_figure(story, f"order in {who}")))
    return [*found, ("courses", courses_figure(table.of(LossRow)))]


def _letter(number: int, row: CircuitRow) -> str:
    """Return a model's letter: A, B and C are seeds 0, 1 and 2 of 12 layers; D has variants."""
    if row.layers == D_LAYERS:
        weights = "" if row.init == "gpt2" else f"-{row.init}"
        seed = f"-seed-{row.seed}" if row.seed else ""
        return f"d-{row.examples}{weights}{seed}"
    return "abc"[row.seed] if row.layers == 12 else f"{row.layers}x{row.heads}-{number}"


def _depths(table: ResultsTable) -> list[NamedPicture]:
    """Draw figure 3, and the fewest layers by three counts."""
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


def _answers(table: ResultsTable) -> list[NamedPicture]:
    """Draw figure 2 from rows."""
    from hopscope.plots.lm import results_figure

    by_model: dict[str, list[AnswerRow]] = {}
    for row in table.of(AnswerRow):
        by_model.setdefault(row.asked, []).append(row)
    return [("accuracy", results_figure(by_model))]


BESIDE_FIGURE_4: Mapping[str, Callable[[ResultsTable, ResultsTable], list[NamedPicture]]] = {
    "musat/fig4-nonic": _beside_curriculum,
    "musat/fig4-seeds": _all_seeds,
}
"""Functions that draw an experiment together with the rows of `musat/fig4-ic`, if there are any."""

FIGURES: Mapping[str, Callable[[ResultsTable], list[NamedPicture]]] = {
    "musat/depth": _depths,
    "musat/fig2": _answers,
    "musat/fig4-ic": lambda table: by_depth(table.of(LossRow)),
    "musat/fig4-seeds": lambda table: by_depth(table.of(LossRow)),
    "musat/fig4-nonic": lambda table: final_loss_figures(table.of(LossRow)),
    "musat/fig4-nonic-seeds": lambda table: final_loss_figures(table.of(LossRow)),
    "musat/fig5": _circuits,
    "musat/variants": _variants,
    "musat/variants-long": _variants,
    "musat/fig7": _circuits,
    "musat/fig7-seeds": _circuits,
    "musat/fig7-pair": _circuits,
    "chen/training": training_figures,
    "chen/growth": lambda table: [("courses", growth_figure(table.of(GrowthRow)))],
    "chen/choices": lambda table: [("rules", choices_figure(table.of(ChoiceRow)))],
    "chen/settings": lambda table: [("distances", settings_figure(table.of(SettingRow)))],
}
