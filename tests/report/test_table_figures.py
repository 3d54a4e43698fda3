"""The papers' figures from tables alone, as they come back from a file."""

import json
from collections.abc import Sequence
from dataclasses import replace

import chen_rows
import musat_rows
import numpy as np
import pytest
from matplotlib.axes import Axes
from musat_rows import changed_row, place_row, with_
from musat_rows import loss_row as loss_row_of

from hopscope import load
from hopscope.circuits import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.papers.chen.judges import NEAR
from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT
from hopscope.papers.musat.measure_depth import depth_rows
from hopscope.papers.musat.reading_map import tried
from hopscope.papers.musat.rows import CircuitRow, DepthRow, LossRow, Maps, Story
from hopscope.papers.registry import PAPERS
from hopscope.papers.row import Row, read_row
from hopscope.papers.table import Table
from hopscope.report.chen import settings_figures, training_figures
from hopscope.report.look import Picture
from hopscope.report.maps import USED
from hopscope.report.places import changed_figure, place_figure
from hopscope.report.readings import batch_figure, law_figure, map_figure
from hopscope.report.symbols import counted
from hopscope.report.table_figures import FIGURES, figures


def loss_row(layers: int, seed: int = 0, *, hops: int = 2, curriculum: bool = True) -> LossRow:
    final = [0.5 / layers + seed / 10] * (hops if curriculum else 1)
    return musat_rows.loss_row(layers, final, seed=seed, hops=hops)


KINDS = [("equations-d1", 1), ("equations-d2", 2), ("functions", 2)]


@pytest.fixture(scope="module")
def circuit_row() -> CircuitRow:
    """Weights written by hand, as if they had been trained."""
    maps = Maps.model_validate(load("gallery/planted").attention(8).to_dict())
    return with_(
        musat_rows.circuit_row("key 0"),
        **loss_row(len(maps.own)).model_dump(exclude_unset=True),
        useful=sorted({(path.layer, path.head) for path in musat_rows.PLANTED.paths}),
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
    circuit = Circuit.from_dict(row.circuit).model_copy(update={"components": ()})
    return with_(row, useful=[], circuit=circuit.model_dump(mode="json"))


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


def test_where_there_is_little_little_is_drawn() -> None:
    assert figures(Table("musat/fig9", "full", (Row(run="one"),))) == []
    assert {*FIGURES} == {*PAPERS.targets}
    for target in FIGURES:
        assert figures(Table(target, "full", ())) == []
    shuffled = musat_rows.reading_rows("fan-in shuffled")  # a trial of ours has no nearest model
    assert [*drawn("musat/readings", shuffled)] == ["map"]
    assert [*drawn("musat/readings", musat_rows.reading_rows("fan-in"))] == ["map", "nearest"]
    assert len(drawn("musat/fig4-ic", [loss_row(2, hops=1)])) == 3  # one model is enough
    assert [*drawn("musat/order", [loss_row(2, hops=9)])] == ["courses"]


def test_losses_are_means_over_seeds_by_depth_and_courses_those_of_each_model() -> None:
    rows = sweep()
    found = drawn("musat/fig4-ic", rows)
    assert "D = 2" in found["layers"].name
    shown = lines(found["layers"].axes[0])
    means = [0.5 / layers + 0.05 for layers in (1, 2, 3)]
    assert shown["x₁"] == shown["x₂"] == shown["all hops"] == pytest.approx(means)
    assert shown["guess"] == [0.75, 0.75]
    panels = {axes.get_title(): axes for axes in found["courses"].axes if axes.get_title()}
    assert [*panels] == [f"{counted(row.layers, 'layer')}, seed {row.seed}" for row in rows]
    faint = [[*line.get_ydata()] for line in panels["2 layers, seed 0"].lines if line.get_alpha()]
    assert faint == [list(hop) for hop in rows[2].course.train]  # what was trained on
    alone = drawn("musat/fig4-nonic", sweep(curriculum=False))["layers"]
    assert {name for name in lines(alone.axes[0]) if name.startswith("x")} == {"x₂"}


def test_layers_are_those_of_the_rows() -> None:
    rows = depth_rows("smoke")
    shown = lines(drawn("musat/depth", rows)["layers"].axes[0])
    for label, kind in {
        "causal, exact": "causal", "both directions, exact": "bidirectional",
        "theorem 1": "theorem_1",
    }.items():  # fmt: skip
        assert shown[label] == [getattr(row, kind) for row in rows if isinstance(row, DepthRow)]


def test_answers_that_were_opened_are_a_line_of_their_own() -> None:
    opened = [(f"{kind}-opened", hops) for kind, hops in KINDS]
    rows = [musat_rows.answer_row("small", *kind) for kind in (*KINDS, *opened)]
    figure = drawn("musat/fig2", rows)["accuracy"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["small", "small (opened)"]
    courses = [list(container.lines[0].get_xdata()) for container in figure.axes[0].containers]
    assert courses == [pytest.approx([1, 2], abs=0.1)] * 2


def test_transformers_have_their_letters(circuit_row: CircuitRow) -> None:
    """A, B and C have 12 layers, all readings of D 24."""
    trained = [with_(circuit_row, layers=12, seed=seed) for seed in range(3)]
    abc = drawn("musat/fig5", trained)
    kinds = ("circuit", "maps")
    assert [*abc] == [*(f"{kind}-{letter}" for letter in "abc" for kind in kinds), "courses"]
    assert abc["circuit-b"].name.startswith("circuit of transformer B")
    assert [*drawn("musat/fig5", trained[2:])] == ["circuit-c", "maps-c", "courses"]
    read = [
        with_(circuit_row, layers=24, examples=examples, init=init)
        for examples, init in ((262_144, "gpt2"), (2_048, "gpt2"), (262_144, "fan-in"))
    ]
    names = ("262144", "2048", "262144-fan-in")
    expected = [*(f"{kind}-d-{name}" for name in names for kind in kinds), "courses"]
    assert [*drawn("musat/fig7", read)] == expected


def test_heads_of_the_circuit_are_marked_and_paths_in_the_order_of_the_story(
    circuit_row: CircuitRow,
) -> None:
    found = drawn("musat/fig5", [circuit_row, idle(circuit_row)])
    used, unused = (figure for name, figure in found.items() if name.startswith("maps"))
    marked = [axes.get_title() for axes in used.axes if axes.title.get_color() == USED]
    assert marked == [f"{layer}.{head}*" for layer, head in circuit_row.useful]
    assert not any(axes.title.get_color() == USED for axes in unused.axes)
    found = drawn("musat/fig7", [with_(circuit_row, emergence=story(circuit_row))])
    kinds = ["circuit", "maps", "emergence", "order", "courses"]
    assert [name.partition("-")[0] for name in found] == kinds
    (order,) = (figure for name, figure in found.items() if name.startswith("order"))
    steps = [float(line.get_xdata()[0]) for line in order.axes[0].lines]
    paths = Circuit.model_validate(circuit_row.circuit).paths
    assert steps == [10.0 * number + 5 for number in reversed(range(len(paths)))]


def test_figure_4_shows_both_sweeps_where_both_are_measured() -> None:
    with_ = Table("musat/fig4-ic", "full", tuple(loss_row(layers, hops=3) for layers in (1, 2)))
    rows = [
        loss_row(layers, seed, hops=2, curriculum=False) for layers in (1, 2) for seed in (0, 1)
    ]
    without = Table("musat/fig4-nonic", "full", tuple(rows))
    known = {table.target: table for table in (with_, without)}
    (name, figure), *rest = figures(without, known.get)
    assert name == "curriculum"
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
    assert [*found] == ["layers", "courses", "law"]
    (law,) = found["law"].axes
    assert [text.get_text() for text in law.texts] == ["2", "2"]
    assert "9,000 steps" in found["law"].caption
    assert sum(bool(axes.get_title()) for axes in found["courses"].axes) == 3
    tiny = replace(first, protocol="smoke")
    for alone in (dict(figures(seeds)), dict(figures(seeds, {first.target: tiny}.get))):
        assert [text.get_text() for text in alone["law"].axes[0].texts] == ["1", "2"]


def test_each_reading_has_its_losses_and_for_how_many_models_a_claim_holds() -> None:
    rows = [*musat_rows.reading_rows("torch")[:2], *musat_rows.reading_rows("fan-in")]
    rows[:2] = [with_(row, final=[0.4] * 3, model=0.4) for row in rows[:2]]
    rows[3] = with_(rows[3], final=[0.02] * 3, model=0.02)
    figure = map_figure(tried([Table("musat/readings", "reduced", tuple(rows))]))
    ends, claims = figure.axes
    assert [label.get_text() for label in ends.get_yticklabels()] == ["fan-in", "torch"]
    dots = [line for line in ends.lines if line.get_marker() == "o"]
    losses = [loss for dot in dots for loss in dot.get_xdata()]
    assert losses == pytest.approx([0.004, 0.02, 0.004, 0.4, 0.4])
    assert [list(dot.get_ydata()) for dot in dots] == [[0, 0, 0], [1, 1]]
    cells = {text.get_position(): text.get_text() for text in claims.texts}
    assert len(cells) == 2 * len(AS_WE_TAKE_IT)
    assert (cells[0, 0], cells[0, 1]) == ("2/3", "0/2")
    assert "6,400 steps, 150 TFLOP each" in figure.caption


def test_models_are_counted_by_depth_and_stand_at_their_batch() -> None:
    rows = [
        loss_row_of(1, [0.75, 0.75]), loss_row_of(2, [0.1, 0.75]),
        loss_row_of(2, [0.1, 0.75], seed=1), loss_row_of(2, [0.75, 0.75], seed=2),
        loss_row_of(3, [0.1, 0.1]),
    ]  # fmt: skip
    (axes,) = law_figure(rows).axes
    shown = {text.get_position(): text.get_text() for text in axes.texts}
    assert shown == {(1, 0): "1", (2, 1): "2", (2, 0): "1", (3, 2): "1"}
    (law,) = axes.lines
    assert (list(law.get_xdata()), list(law.get_ydata())) == ([1, 2, 3], [0, 1, 2])
    rows = [
        with_(loss_row_of(4, [0.1, final], [90, step]), batch=batch)
        for batch, final, step in ((64, 0.7, None), (128, 0.2, 400))
    ]
    when, end = batch_figure(rows).axes
    learned = [(list(line.get_xdata()), list(line.get_ydata())) for line in when.lines]
    assert learned == [([64, 128], [90, 90]), ([128], [400])]
    assert [list(line.get_ydata()) for line in end.lines] == [[0.1, 0.1], [0.7, 0.2]]


def test_models_stand_by_what_they_know_of_other_places_and_how_long_they_wait() -> None:
    rows = [
        place_row("shuffled", 0.3, [400, 440]), place_row("backward", 1.1, [400, 800]),
        place_row("backward", 1.0, [400, None]), place_row("backward", 1.0, [None, None]),
    ]  # fmt: skip
    (axes,) = place_figure(rows).axes
    points = {
        str(line.get_label()): (list(line.get_xdata()), list(line.get_ydata()), line.get_marker())
        for line in axes.lines
    }
    layers = "4 layers, {}, code per pair, base 10 ({})"
    assert points[layers.format("shuffled", "1 of 1")] == ([0.3], [0.1], "o")
    assert points[layers.format("in order", "1 of 3")] == ([1.1], [1.0], "s")
    levels = [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() == ":"]
    assert levels == [[0.25, 0.25]]


def test_each_model_is_a_line_from_one_order_to_the_other() -> None:
    rows = [
        changed_row("shuffled", "backward", 50), changed_row("shuffled", "shuffled", 90),
        changed_row("backward", "backward", 300, seed=2),
        changed_row("backward", "shuffled", None, seed=2),
    ]  # fmt: skip
    panels = changed_figure(rows).axes
    titles = [axes.get_title() for axes in panels]
    assert ["in order" in titles[0], "shuffled" in titles[1]] == [True, True]
    drawn = [
        [list(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) > 1]
        for axes in panels
    ]
    assert drawn == [[[300, 600]], [[50, 90]]]
    filled = {
        line.get_ydata()[0]: line.get_markerfacecolor() == line.get_color()
        for axes in panels
        for line in axes.lines
        if len(line.get_ydata()) == 1
    }
    assert filled == {300: True, 600: False, 50: True, 90: True}


def of_chen(rows: list[Row]) -> Table:
    return Table("chen/training", "full", tuple(rows))


def test_other_chains_are_means_over_seeds_in_order_of_their_values() -> None:
    rows: list[Row] = [chen_rows.course_row(seed) for seed in (0, 1)]
    for seed, length, loss in ((0, 400, 0.2), (0, 10, 0.4), (1, 10, 0.6), (1, 400, 0.1)):
        row = chen_rows.transfer_row(seed, "length", length, 0.1)
        losses = row.loss.model_copy(update={"model": loss})
        rows.append(row.model_copy(update={"loss": losses}))
    rows += [chen_rows.transfer_row(seed, "alpha", 100, 0.5) for seed in (0, 1)]
    _, (_, figure) = training_figures(of_chen(rows))
    model, *others, trained = figure.axes[0].lines
    assert list(model.get_xdata()) == [10, 400]
    assert list(model.get_ydata()) == pytest.approx([0.5, 0.15])
    assert {line.get_label(): list(line.get_ydata()) for line in others} == {
        "GIH": [0.3, 0.3], "Bayes": [0.2, 0.2], "truth": [0.1, 0.1],
    }  # fmt: skip
    assert list(trained.get_xdata()) == [100, 100]


def test_settings_that_chose_other_lags_stand_out() -> None:
    right = [chen_rows.setting_row("the paper's", seed) for seed in (0, 1)]
    changes = {"chosen_lags": (1,), "distance": 0.5}
    wrong = chen_rows.setting_row("alphabet 8").model_copy(update=changes)
    ((_, figure),) = settings_figures(of_chen([*right, wrong]))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["alphabet 8", "the paper's"]
    upper, lower, limit = axes.lines
    assert (list(upper.get_xdata()), list(upper.get_ydata())) == ([0.006, 0.006], [1, 1])
    assert (list(lower.get_xdata()), list(lower.get_ydata())) == ([0.5], [0])
    assert upper.get_color() != lower.get_color()
    assert list(limit.get_xdata()) == [NEAR, NEAR]
