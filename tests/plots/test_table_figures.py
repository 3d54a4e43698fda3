"""The papers' figures from tables alone, as they come back from a file."""

import json
from collections.abc import Sequence
from typing import Any

import chen_rows
import musat_rows
import numpy as np
import pytest
from matplotlib.axes import Axes
from musat_rows import loss_row as loss_row_of
from musat_rows import table, with_

from hopscope import load
from hopscope.circuits import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.papers.chen.claims import NEAR
from hopscope.papers.chen.rows import SettingRow
from hopscope.papers.musat.circuit_claims import CLAIMS, by_variant
from hopscope.papers.musat.measure_depth import depth_rows
from hopscope.papers.musat.rows import CircuitRow, DepthRow, LossRow
from hopscope.papers.registry import PAPERS
from hopscope.papers.results import ResultsTable
from hopscope.papers.row import ResultRow, read_row
from hopscope.plots.chen import settings_figure, training_figures
from hopscope.plots.look import Picture
from hopscope.plots.maps import USED
from hopscope.plots.sweeps import (
    LARGEST,
    courses_figure,
    curriculum_figure,
    law_figure,
    layers_figure,
    map_figure,
)
from hopscope.plots.symbols import counted
from hopscope.plots.table_figures import FIGURES, figures


def loss_row(layers: int, seed: int = 0, *, hops: int = 2, curriculum: bool = True) -> LossRow:
    final = [0.5 / layers + seed / 10] * (hops if curriculum else 1)
    return musat_rows.loss_row(layers, final, seed=seed, hops=hops)


KINDS = [("equations-d1", 1), ("equations-d2", 2), ("functions", 2)]


@pytest.fixture(scope="module")
def circuit_row() -> CircuitRow:
    """Weights written by hand, as if they had been trained."""
    maps = load("gallery/planted").attention(8)
    return with_(
        musat_rows.circuit_row("key 0"),
        **loss_row(len(maps.own)).model_dump(exclude_unset=True),
        useful=sorted({(path.layer, path.head) for path in musat_rows.PLANTED.paths}),
        maps=maps.to_dict(),
    )


def story(row: CircuitRow) -> dict[str, Any]:
    """Paths that appear one after the other."""
    paths = Circuit.from_dict(row.circuit).paths
    steps = tuple(range(0, 10 * (len(paths) + 2), 10))
    attention = [[float(step > 10 * number + 5) for step in steps] for number in range(len(paths))]
    losses = np.linspace(1, 0, 2 * len(steps)).reshape(len(steps), 2)
    return Emergence(paths, steps, np.array(attention), losses, 0.75, 5.0).to_dict()


def idle(row: CircuitRow) -> CircuitRow:
    """The same without any path found."""
    circuit = Circuit.from_dict(row.circuit).model_copy(update={"components": ()})
    return with_(row, useful=[], circuit=circuit.model_dump(mode="json"))


def sweep(*, curriculum: bool = True) -> list[LossRow]:
    return [loss_row(n, seed, curriculum=curriculum) for n in (1, 2, 3) for seed in (0, 1)]


def drawn(target: str, rows: Sequence[ResultRow]) -> dict[str, Picture]:
    """The figures of rows that were on disk, by name."""
    kinds = PAPERS.experiments[target].rows
    again = tuple(read_row(kinds, json.loads(row.to_json())) for row in rows)
    found = figures(table(target, again))
    named = dict(found)
    assert len(named) == len(found)
    return named


def lines(axes: Axes) -> dict[str, list[float]]:
    return {str(line.get_label()): [float(y) for y in line.get_ydata()] for line in axes.lines}


def test_where_there_is_little_little_is_drawn() -> None:
    assert figures(table("musat/fig9", [ResultRow(run="one")])) == []
    assert {*FIGURES} == {*PAPERS.experiments}
    for target in FIGURES:
        assert figures(table(target, [])) == []
    shuffled = musat_rows.variant_rows("fan-in shuffled")  # a trial of ours has no nearest model
    assert [*drawn("musat/variants", shuffled)] == ["map"]
    assert [*drawn("musat/variants", musat_rows.variant_rows("fan-in"))] == ["map", "nearest"]
    assert len(drawn("musat/fig4-ic", [loss_row(2, hops=1)])) == 3  # one model is enough


def test_losses_are_means_over_seeds_by_depth_and_courses_those_of_each_model() -> None:
    rows = sweep()
    found = drawn("musat/fig4-ic", rows)
    assert "D = 2" in found["layers"].name
    shown = lines(found["layers"].axes[0])
    means = [0.5 / layers + 0.05 for layers in (1, 2, 3)]
    assert shown["x₁"] == shown["x₂"] == shown["all hops"] == pytest.approx(means)
    assert shown["chance"] == [0.75, 0.75]
    panels = {axes.get_title(): axes for axes in found["courses"].axes if axes.get_title()}
    assert [*panels] == [f"{counted(row.layers, 'layer')}, seed {row.seed}" for row in rows]
    faint = [[*line.get_ydata()] for line in panels["2 layers, seed 0"].lines if line.get_alpha()]
    assert faint == [list(hop) for hop in rows[2].course.train]  # what was trained on
    course = rows[0].course
    high = course.model_copy(
        update={
            "losses": [[9.0 for _ in course.steps]] * 2,
            "train": [[9.0 for _ in course.steps]] * 2,
        }
    )
    figure = courses_figure([rows[0].model_copy(update={"course": high})])
    assert figure.axes[0].get_ylim()[1] > 9  # also where all is above chance
    assert "The axis of losses ends at 14.4." in figure.caption
    other = rows[0].model_copy(update={"chance": 0.5})
    assert courses_figure([rows[0], other]).axes[0].get_ylim()[1] == pytest.approx(1.6 * 0.75)
    alone = drawn("musat/fig4-nonic", sweep(curriculum=False))["layers"]
    assert {name for name in lines(alone.axes[0]) if name.startswith("x")} == {"x₂"}


def test_layers_are_those_of_the_rows() -> None:
    rows = depth_rows(8)
    shown = lines(drawn("musat/depth", rows)["layers"].axes[0])
    for label, kind in {
        "causal, exact": "causal", "both directions, exact": "bidirectional",
        "theorem 1": "theorem_1",
    }.items():  # fmt: skip
        assert shown[label] == [getattr(row, kind) for row in rows if isinstance(row, DepthRow)]


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
    with_ = table("musat/fig4-ic", [loss_row(layers, hops=3) for layers in (1, 2)])
    rows = [
        loss_row(layers, seed, hops=2, curriculum=False) for layers in (1, 2) for seed in (0, 1)
    ]
    without = table("musat/fig4-nonic", rows)
    known = {its.experiment: its for its in (with_, without)}
    (name, figure), *rest = figures(without, known.get)
    assert name == "curriculum"
    shown = lines(figure.axes[0])
    assert shown["with curriculum, D = 3"] == pytest.approx([0.5, 0.25])
    assert shown["without curriculum, D = 2"] == pytest.approx([0.55, 0.3])
    assert [each[0] for each in rest] == [each[0] for each in figures(without)]
    assert "curriculum" not in [each[0] for each in figures(with_, known.get)]


def test_each_variant_has_its_losses_and_for_how_many_models_a_claim_holds() -> None:
    rows = [*musat_rows.variant_rows("torch")[:2], *musat_rows.variant_rows("fan-in")]
    rows[:2] = [with_(row, final=[0.4] * 3, model=0.4) for row in rows[:2]]
    rows[3] = with_(rows[3], final=[0.02] * 3, model=0.02)
    figure = map_figure(by_variant(rows))
    ends, claims = figure.axes
    assert [label.get_text() for label in ends.get_yticklabels()] == ["fan-in", "torch"]
    dots = [line for line in ends.lines if line.get_marker() == "o"]
    losses = [loss for dot in dots for loss in dot.get_xdata()]
    assert losses == pytest.approx([0.004, 0.02, 0.004, 0.4, 0.4])
    assert [list(dot.get_ydata()) for dot in dots] == [[0, 0, 0], [1, 1]]
    cells = {text.get_position(): text.get_text() for text in claims.texts}
    assert len(cells) == 2 * len(CLAIMS)
    assert (cells[0, 0], cells[0, 1]) == ("2/3", "0/2")
    assert "10,000 steps, 150 TFLOP each" in figure.caption


def test_models_are_counted_by_depth() -> None:
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
    assert all(place == round(place) for place in axes.get_yticks())
    alone = law_figure(rows[:1]).axes[0].lines[0]  # a step of one depth would not be seen
    assert alone.get_marker() == "o"
    crowd = [loss_row_of(n, [0.1, 0.75], seed=seed) for n in (2, 3) for seed in range(60)]
    sizes = [each.get_sizes()[0] for each in law_figure([*crowd, *rows]).axes[0].collections]
    assert max(sizes) == LARGEST  # 60 models do not cover their neighbours
    assert sizes.count(LARGEST / 62) == len(sizes) - 2  # and areas are still proportional


def test_of_many_depths_not_all_are_marked() -> None:
    few, many = sweep(), [loss_row(layers) for layers in range(1, 25)]
    assert [*curriculum_figure(few, few).axes[0].get_xticks()] == [1, 2, 3]
    assert [*curriculum_figure(few, many).axes[0].get_xticks()] == [*range(1, 25, 2)]
    for draw in (layers_figure, law_figure):
        assert [*draw(many).axes[0].get_xticks()] == [*range(1, 25, 2)]


def of_chen(rows: list[ResultRow]) -> ResultsTable:
    return table("chen/training", rows)


def test_other_chains_are_means_over_seeds_in_order_of_their_values() -> None:
    rows: list[ResultRow] = [chen_rows.course_row(seed) for seed in (0, 1)]
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
    alone, *_ = figure.axes[1].lines  # a line of one value would not be seen
    assert (len(alone.get_xdata()), alone.get_marker()) == (1, "o")


def test_more_seeds_are_drawn_with_those_that_figure_4_has() -> None:
    """All models by depth, each once, as long as it was trained; courses of the new ones alone."""
    first = table("musat/fig4-ic", [loss_row(1), loss_row(2)], "reduced")
    longer = loss_row(2).model_copy(update={"steps": 20_000})
    seeds = table("musat/fig4-seeds", [loss_row(1, 1), loss_row(2, 1), longer])
    found = dict(figures(seeds, {first.experiment: first}.get))
    assert [*found] == ["layers", "courses", "law"]
    (law,) = found["law"].axes
    assert [text.get_text() for text in law.texts] == ["2", "2"]
    assert "20,000 steps" in found["law"].caption
    assert sum(bool(axes.get_title()) for axes in found["courses"].axes) == 3
    alone = dict(figures(seeds))
    assert [text.get_text() for text in alone["law"].axes[0].texts] == ["1", "2"]


def test_settings_that_chose_other_lags_stand_out() -> None:
    right = [chen_rows.setting_row("the paper's", seed) for seed in (0, 1)]
    changes = {"chosen_lags": (1,), "distance": 0.5}
    wrong = chen_rows.setting_row("alphabet 8").model_copy(update=changes)
    figure = settings_figure(of_chen([*right, wrong]).of(SettingRow))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["alphabet 8", "the paper's"]
    upper, lower, limit = axes.lines
    assert (list(upper.get_xdata()), list(upper.get_ydata())) == ([0.006, 0.006], [1, 1])
    assert (list(lower.get_xdata()), list(lower.get_ydata())) == ([0.5], [0])
    assert upper.get_color() != lower.get_color()
    assert list(limit.get_xdata()) == [NEAR, NEAR]
