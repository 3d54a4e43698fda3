"""The papers' figures from tables alone, as they come back from a file."""

import json
from collections.abc import Sequence
from dataclasses import replace

import chen_rows
import musat_rows
import numpy as np
import pytest
from matplotlib.axes import Axes
from musat_rows import with_

from hopscope.circuits import Circuit, attention_maps, discover
from hopscope.circuits.emergence import Emergence
from hopscope.configs import Retrieval
from hopscope.models.planted import planted
from hopscope.papers.chen.settings import CHOSEN_IN, SETTINGS
from hopscope.papers.musat.measure_depth import depth_rows
from hopscope.papers.musat.rows import CircuitRow, DepthRow, LossRow, Maps, Story
from hopscope.papers.registry import PAPERS
from hopscope.papers.row import Row, read_row
from hopscope.papers.table import Table
from hopscope.report.look import Picture
from hopscope.report.maps import USED
from hopscope.report.symbols import counted
from hopscope.report.table_figures import FIGURES, figures


def loss_row(layers: int, seed: int = 0, *, hops: int = 2, curriculum: bool = True) -> LossRow:
    final = [0.5 / layers + seed / 10] * (hops if curriculum else 1)
    return musat_rows.loss_row(layers, final, seed=seed, hops=hops)


KINDS = [("equations-d1", 1), ("equations-d2", 2), ("functions", 2)]


@pytest.fixture(scope="module")
def circuit_row() -> CircuitRow:
    """Two hops by weights written by hand, as if they had been trained."""
    known = planted(Retrieval(hops=2, chains=2, dim=6, symbols="one-hot"))
    circuit = discover(known.model, known.task, examples=16)
    assert circuit.paths
    maps = Maps.model_validate(attention_maps(known.model, known.task, examples=16).to_dict())
    return with_(
        musat_rows.circuit_row("key 0"),
        **loss_row(len(maps.own)).model_dump(exclude_unset=True),
        useful=sorted({part.at for part in circuit.parts if part.paths}),
        circuit=circuit.model_dump(mode="json"),
        maps=maps,
    )


def story(row: CircuitRow) -> Story:
    """Paths that appear one after the other."""
    paths = Circuit.from_dict(row.circuit).paths
    steps = tuple(range(0, 10 * (len(paths) + 2), 10))
    attention = [[float(step > 10 * number + 5) for step in steps] for number in range(len(paths))]
    losses = np.linspace(1, 0, 2 * len(steps)).reshape(len(steps), 2)
    told = Emergence(paths, steps, np.array(attention), losses, 0.75, 5.0)
    return Story.model_validate(told.to_dict())


def idle(row: CircuitRow) -> CircuitRow:
    """The same without any path found."""
    circuit = Circuit.from_dict(row.circuit).model_copy(update={"parts": ()})
    return with_(row, useful=[], circuit=circuit.model_dump(mode="json"))


def rows_of(target: str, circuit: CircuitRow) -> Sequence[Row]:
    if target == "musat/depth":
        return depth_rows("smoke")
    if target == "musat/fig2":
        return [
            musat_rows.answer_row(model, *kind) for model in ("small", "large") for kind in KINDS
        ]
    if target == "musat/fig5":
        return [circuit, idle(circuit)]
    if target.startswith("musat/readings"):
        known = [*musat_rows.reading_rows("fan-in"), *musat_rows.reading_rows("torch")[:2]]
        return [with_(row, circuit=circuit.circuit) for row in known]
    if target.startswith("musat/fig7"):
        return [with_(circuit, emergence=story(circuit))]
    if target == "musat/places":
        return [musat_rows.place_row("shuffled", 0.1), musat_rows.place_row("backward", 1.1)]
    if target == "musat/places-changed":
        return [musat_rows.changed_row("shuffled", order, 50) for order in ("backward", "shuffled")]
    if target.startswith("chen"):
        return rows_of_chen(target)
    return sweep(curriculum=not target.startswith("musat/fig4-nonic"))


def rows_of_chen(target: str) -> Sequence[Row]:
    if target == "chen/training":
        return chen_rows.training()
    if target == "chen/growth":
        return [chen_rows.growth_row(seed) for seed in (0, 1)]
    if target == "chen/choices":
        return [chen_rows.choice_row(name, seed) for name in CHOSEN_IN for seed in (0, 1)]
    return [chen_rows.setting_row(name) for name in SETTINGS]


def sweep(*, curriculum: bool = True) -> list[LossRow]:
    return [loss_row(n, seed, curriculum=curriculum) for n in (1, 2, 3) for seed in (0, 1)]


def drawn(target: str, rows: Sequence[Row]) -> dict[str, Picture]:
    """The figures of rows that were on disk, by name."""
    kinds = PAPERS.targets[target].rows
    again = tuple(read_row(kinds, json.loads(row.to_json())) for row in rows)
    found = figures(Table(target, "smoke", again))
    named = dict(found)
    assert len(named) == len(found)
    return named


def lines(axes: Axes) -> dict[str, list[float]]:
    return {str(line.get_label()): [float(y) for y in line.get_ydata()] for line in axes.lines}


OF_D = ["circuit-4x1-0", "maps-4x1-0", "emergence-4x1-0", "order-4x1-0", "courses"]
NAMES = {
    "musat/depth": ["layers", "shared"],
    "musat/fig2": ["accuracy"],
    "musat/fig4-ic": ["layers", "courses", "law"],
    "musat/fig4-seeds": ["layers", "courses", "law"],
    "musat/fig4-nonic": ["layers", "courses"],
    "musat/fig4-nonic-seeds": ["layers", "courses"],
    "musat/order": ["courses"],
    "musat/depth-small": ["layers", "courses", "law"],
    "musat/fig5": ["circuit-4x1-0", "maps-4x1-0", "maps-4x1-1", "courses"],
    "musat/readings": ["map", "nearest"],
    "musat/readings-long": ["map", "nearest"],
    "musat/fig7": OF_D,
    "musat/fig7-seeds": OF_D,
    "musat/fig7-pair": OF_D,
    "musat/batches": ["plateau"],
    "musat/places": ["waits"],
    "musat/places-changed": ["second"],
    "chen/training": ["stages", "transfer"],
    "chen/settings": ["distances"],
    "chen/growth": ["courses"],
    "chen/choices": ["rules"],
}


@pytest.mark.parametrize("target", PAPERS.targets)
def test_every_target_has_its_figures(target: str, circuit_row: CircuitRow) -> None:
    found = drawn(target, rows_of(target, circuit_row))
    layers = len(circuit_row.maps.own)
    assert [*found] == [name.replace("4x1", f"{layers}x1") for name in NAMES[target]]
    for figure in found.values():
        assert len(figure.caption) > 10
        figure.draw_without_rendering()
        assert any(axes.has_data() or axes.patches or axes.texts for axes in figure.axes)


def test_unknown_targets_and_empty_tables_have_none() -> None:
    assert figures(Table("musat/fig9", "full", (Row(run="one"),))) == []
    for target in FIGURES:
        assert figures(Table(target, "full", ())) == []


def test_losses_are_means_over_seeds_by_depth() -> None:
    found = drawn("musat/fig4-ic", sweep())
    figure = found["layers"]
    assert "D = 2" in figure.name
    shown = lines(figure.axes[0])
    means = [0.5 / layers + 0.05 for layers in (1, 2, 3)]
    assert shown["x₁"] == shown["x₂"] == pytest.approx(means)
    assert shown["guess"] == [0.75, 0.75]
    titles = [axes.get_title() for axes in found["courses"].axes]
    expected = [
        f"{counted(layers, 'layer')}, seed {seed}" for layers in (1, 2, 3) for seed in (0, 1)
    ]
    assert [title for title in titles if title] == expected


def test_without_curriculum_the_last_hop_is_shown_alone() -> None:
    figure = drawn("musat/fig4-nonic", sweep(curriculum=False))["layers"]
    assert {name for name in lines(figure.axes[0]) if name.startswith("x")} == {"x₂"}


def test_one_model_is_enough() -> None:
    assert len(drawn("musat/fig4-ic", [loss_row(2, hops=1)])) == 3
    assert [*drawn("musat/order", [loss_row(2, hops=9)])] == ["courses"]


def test_layers_are_those_of_the_rows() -> None:
    rows = depth_rows("smoke")
    figure = drawn("musat/depth", rows)["layers"]
    shown = lines(figure.axes[0])
    for label, kind in {
        "causal, exact": "causal", "both directions, exact": "bidirectional",
        "theorem 1": "theorem_1",
    }.items():  # fmt: skip
        assert shown[label] == [getattr(row, kind) for row in rows if isinstance(row, DepthRow)]


def test_answers_that_were_opened_are_a_line_of_their_own() -> None:
    opened = [(f"{kind}-opened", hops) for kind, hops in KINDS]
    rows = [musat_rows.answer_row("small", *kind) for kind in (*KINDS, *opened)]
    figure = drawn("musat/fig2", rows)["accuracy"]
    left, right = figure.axes
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["small", "small (opened)"]
    assert right.get_title() == "every kind of question"
    courses = [list(container.lines[0].get_xdata()) for container in left.containers]
    assert courses == [pytest.approx([1, 2], abs=0.1)] * 2


def test_transformers_have_their_letters(circuit_row: CircuitRow) -> None:
    """A, B and C have 12 layers, all readings of D 24."""
    trained = [with_(circuit_row, layers=12, seed=seed) for seed in range(3)]
    abc = drawn("musat/fig5", trained)
    kinds = ("circuit", "maps")
    assert [*abc] == [*(f"{kind}-{letter}" for letter in "abc" for kind in kinds), "courses"]
    assert abc["circuit-b"].name.startswith("circuit of transformer B")
    assert [*drawn("musat/fig5", trained[2:])] == ["circuit-c", "maps-c", "courses"]
    readings = ((262_144, "gpt2"), (2_048, "gpt2"), (262_144, "fan-in"))
    read = drawn(
        "musat/fig7",
        [
            with_(circuit_row, layers=24, examples=examples, init=init)
            for examples, init in readings
        ],
    )
    names = ("262144", "2048", "262144-fan-in")
    assert [*read] == [*(f"{kind}-d-{name}" for name in names for kind in kinds), "courses"]


def test_heads_of_the_circuit_are_marked(circuit_row: CircuitRow) -> None:
    found = drawn("musat/fig5", [circuit_row, idle(circuit_row)])
    used, unused = (figure for name, figure in found.items() if name.startswith("maps"))
    marked = [axes.get_title() for axes in used.axes if axes.title.get_color() == USED]
    assert marked == [f"{layer}.{head}*" for layer, head in circuit_row.useful]
    assert not any(axes.title.get_color() == USED for axes in unused.axes)


def test_the_order_is_that_of_the_story(circuit_row: CircuitRow) -> None:
    found = drawn("musat/fig7", [with_(circuit_row, emergence=story(circuit_row))])
    (order,) = (figure for name, figure in found.items() if name.startswith("order"))
    steps = [float(line.get_xdata()[0]) for line in order.axes[0].lines]
    paths = Circuit.model_validate(circuit_row.circuit).paths
    assert steps == [10.0 * number + 5 for number in reversed(range(len(paths)))]


def test_all_hops_together_and_what_was_trained_on_are_drawn_too() -> None:
    rows = [loss_row(layers, hops=2) for layers in (1, 2)]
    found = drawn("musat/fig4-ic", rows)
    means = [sum(row.final) / 2 for row in rows]
    assert lines(found["layers"].axes[0])["all hops"] == pytest.approx(means)
    panel = found["courses"].axes[1]
    faint = [list(line.get_ydata()) for line in panel.lines if line.get_alpha()]
    assert rows[1].course.train is not None
    assert faint == [list(hop) for hop in rows[1].course.train]


def test_figure_4_shows_both_sweeps_where_both_are_measured() -> None:
    with_ = Table("musat/fig4-ic", "full", tuple(loss_row(layers, hops=3) for layers in (1, 2)))
    rows = [
        loss_row(layers, seed, hops=2, curriculum=False) for layers in (1, 2) for seed in (0, 1)
    ]
    without = Table("musat/fig4-nonic", "full", tuple(rows))
    known = {table.target: table for table in (with_, without)}
    (name, figure), *rest = figures(without, known.get)
    assert (name, figure.name) == ("curriculum", "with and without implicit curriculum")
    shown = lines(figure.axes[0])
    assert shown["with curriculum, D = 3"] == pytest.approx([0.5, 0.25])
    assert shown["without curriculum, D = 2"] == pytest.approx([0.55, 0.3])
    assert [each[0] for each in rest] == [each[0] for each in figures(without)]
    assert "curriculum" not in [each[0] for each in figures(with_, known.get)]


def test_more_seeds_are_drawn_with_those_that_figure_4_has() -> None:
    """All models by depth, each once, as long as it was trained; courses of the new ones alone."""
    first = Table("musat/fig4-ic", "reduced", (loss_row(1), loss_row(2)))
    longer = loss_row(2).model_copy(update={"steps": 9_000})
    seeds = Table("musat/fig4-seeds", "full", (loss_row(1, 1), loss_row(2, 1), longer))
    found = dict(figures(seeds, {first.target: first}.get))
    assert [*found] == NAMES["musat/fig4-seeds"]
    (law,) = found["law"].axes
    assert [text.get_text() for text in law.texts] == ["2", "2"]
    assert f"after {loss_row(1).steps:,} or 9,000 steps" in found["law"].caption
    assert sum(bool(axes.get_title()) for axes in found["courses"].axes) == 3
    tiny = replace(first, protocol="smoke")
    for alone in (dict(figures(seeds)), dict(figures(seeds, {first.target: tiny}.get))):
        assert [text.get_text() for text in alone["law"].axes[0].texts] == ["1", "2"]


def test_readings_of_shuffled_facts_alone_have_no_nearest_model() -> None:
    rows = musat_rows.reading_rows("fan-in shuffled")
    assert [*drawn("musat/readings", rows)] == ["map"]
