"""Figures of a model, a run or a comparison: they show what was measured, each thing once. In every
figure, at its own width and at others, the texts are inside it and apart from each other.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.patches import Arc
from matplotlib.text import Text
from musat_rows import answer_row, with_

import hopscope
from hopscope import load
from hopscope.circuits import Circuit, RoleMaps, adapter_of, attention_maps, examples_of
from hopscope.circuits.ablator import Ablated, Ablations
from hopscope.circuits.components import Estimate
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.export import circuitsvis
from hopscope.circuits.probe import Decodability, Probe, ProbeHistory
from hopscope.circuits.probing import probe
from hopscope.circuits.ranking import Arrow, Baselines, CurvePoint, Ranking, ScoredArrow, Switches
from hopscope.configs import Experiment, Model, Retrieval
from hopscope.errors import ConfigError
from hopscope.facts import Role, chain_of_facts, parse_facts, symbol_name
from hopscope.lm.heads import HeadScores, RoleRoute
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.ngram.evaluation import Moment, approach, transfer
from hopscope.papers.registry import PAPERS
from hopscope.papers.results import that_came_with_it
from hopscope.plots import maps as role_maps
from hopscope.plots.ablations import MOST, losses_figure
from hopscope.plots.baselines import HIGHEST, LOWEST, baselines_figure
from hopscope.plots.circuit import circuit_figure
from hopscope.plots.curves import SMOOTHED_STEPS, comparison_figure, loss_curves, smoothed
from hopscope.plots.depth import grid, shared_information
from hopscope.plots.emergence import emergence_figure, label, order_figure
from hopscope.plots.lm import heads_figure, results_figure
from hopscope.plots.look import DIM, FAINT, LOOK_SETTINGS, SMALL, Picture, looking
from hopscope.plots.maps import example_figure, role_maps_figure
from hopscope.plots.ngram import (
    Stages,
    StageScale,
    approach_figure,
    draw_stages,
    lags_figure,
    stages_figure,
    transfer_figure,
)
from hopscope.plots.probe import history_figure, probe_figure
from hopscope.plots.saving import svg
from hopscope.plots.table_figures import figures
from hopscope.plots.words import (
    ablation_table,
    added_table,
    emergence_pieces,
    history_pieces,
    ordered_roles,
    probe_remarks,
    probe_table,
    short_target,
)
from hopscope.runs import opened
from hopscope.store import Store
from hopscope.store.gallery import find
from hopscope.study import compare
from hopscope.theory import Path, flow
from hopscope.training import Run, train


def legend(figure: Picture) -> list[str]:
    return [text.get_text() for each in figure.legends for text in each.get_texts()]


def test_a_circuit_has_an_arrow_per_path_and_names_layers_and_roles(circuit: Circuit) -> None:
    axes = circuit_figure(circuit).axes[0]
    assert len(axes.patches) == len(circuit.paths)
    shown = {text.get_text() for text in axes.texts}
    assert {"layer 0", "layer 2", "layer 3", "q", "v0", "k1"} <= shown
    assert "layer 1" not in shown  # it does nothing


def test_a_circuit_without_components_says_so(circuit: Circuit) -> None:
    empty = circuit.model_copy(update={"components": ()})
    assert [text.get_text() for text in circuit_figure(empty).axes[0].texts] == ["no component"]


def test_squares_have_their_symbols_in_the_legend_also_by_time() -> None:
    demo = load("gallery/demo")
    for story in (None, demo.emergence(4)):
        assert {"x₀", "x₁", "x₂"} <= set(legend(circuit_figure(demo.circuit, story)))


def test_components_without_a_path_are_named_where_they_look_from() -> None:
    found = load("gallery/transformer-a").circuit
    figure = circuit_figure(found)
    axes = figure.axes[0]
    layers = sorted({each.layer for each in found.components})
    roles = ordered_roles(found)
    named = {
        (round(t.get_position()[0]), t.get_position()[1] // 1): t.get_text() for t in axes.texts
    }
    for each in found.components:
        for role in each.destinations if not each.paths else ():
            assert short_target(each) in named[roles.index(role), layers.index(each.layer)]
    assert "Labels: prev, self, even" in figure.caption
    assert found.verdict in figure.caption


def test_runs_are_compared_in_a_panel_for_each_hop(store: Store, tiny: Experiment) -> None:
    copy = store.copy(find("demo"), "mine")
    figure = comparison_figure(compare("gallery/demo", copy))
    assert [axes.get_title() for axes in figure.axes] == ["hop 1", "hop 2"]
    assert legend(figure) == ["gallery/demo", "mine", "chance"]
    assert len([line for line in figure.axes[1].lines if len(line.get_xdata()) > 100]) == 2
    end = figure.axes[0].get_ylim()[1]
    assert figure.caption.endswith(f"The axis of losses ends at {end:.3g}.")
    long = store.copy(
        find("demo"), "a-copy-with-a-name-of-very-many-letters-in-which-nothing-changed"
    )
    assert trouble(comparison_figure(compare(copy, long))) == []
    other = tiny.model_copy(update={"task": tiny.task.model_copy(update={"chains": 4})})
    figure = comparison_figure(compare(*(train(its, store).folder for its in (tiny, other)), store))
    one, two, *chance = figure.legends[0].get_lines()  # each level in its run's colour
    dotted = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    for levels in (chance, [line for line in dotted if len(line.get_ydata())][:2]):
        assert {line.get_color() for line in levels} == {one.get_color(), two.get_color()}
    found = compare("gallery/demo", copy)
    first, second = found.courses
    second = replace(second, chances=(first.chances[0], 0.5))
    panels = comparison_figure(replace(found, courses=(first, second))).axes
    dotted = [[line for line in axes.lines if line.get_linestyle() == ":"] for axes in panels]
    assert [line.get_color() for line in dotted[0] if len(line.get_ydata())] == [DIM]  # both runs'
    assert {line.get_color() for line in dotted[1]} == {one.get_color(), two.get_color()}
    bare = [store.create(Experiment(model=Model(layers=layers))) for layers in (1, 2)]
    with pytest.raises(ConfigError, match=f"neither {bare[0].name} nor {bare[1].name} has losses"):
        comparison_figure(compare(*bare))


def test_losses_that_are_all_above_chance_are_within_the_figure(
    store: Store, tiny: Experiment
) -> None:
    """And the caption says where the axis ends; a run without losses is refused."""
    steps, values = np.arange(3), np.array([[[9.0, 50.0]], [[np.nan, 7.0]], [[8.0, np.inf]]])
    run = train(tiny, store)
    level, demo = run.recipe.task.chances()[0], Run(find("demo"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "losses", lambda *_: (steps, values))
        figure = loss_curves(run)
    (axes,) = figure.axes
    top = axes.get_ylim()[1]
    drawn = np.concatenate([np.ravel(line.get_ydata()) for line in axes.lines])
    assert top > drawn[drawn > level].min() > 1.6 * level
    assert figure.caption.endswith(f"The axis of losses ends at {top:.3g}.")
    (axes,) = loss_curves(demo).axes
    assert axes.get_ylim()[1] == pytest.approx(1.6 * demo.recipe.task.chances()[0])
    bare = opened(store.create(Experiment(model=Model(layers=1))))
    with pytest.raises(ConfigError, match=f"{bare.name} has no losses to draw"):
        loss_curves(bare)


def test_loss_curves_show_every_hop_smoothed(store: Store, tiny: Experiment) -> None:
    values = np.sin(np.arange(90.0)).reshape(-1, 1)
    slow = [values[max(0, i + 1 - SMOOTHED_STEPS) : i + 1].mean() for i in range(90)]
    assert np.allclose(smoothed(values)[:, 0], slow)
    assert smoothed(values[:0]).shape == (0, 1)
    for seeds, bands in (((0,), 0), ((0, 1), 2)):
        (axes,) = loss_curves(train(tiny.model_copy(update={"seeds": seeds}), store)).axes
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels == ["x₁", "x₂", "chance"]
        assert len(axes.collections) == bands
    run = train(tiny, store)
    losses, chances = np.ones((30, 1, 12)), tuple(0.5 + hop / 100 for hop in range(12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "losses", lambda *_: (np.arange(30), losses))
        patch.setattr(type(run.recipe.task), "asked_hops", lambda _: range(1, 13))
        patch.setattr(type(run.recipe.task), "chances", lambda _: chances)
        figure = loss_curves(run)  # the legend of many hops is below the axes
    assert legend(figure) == [*(symbol_name(f"x{hop}") for hop in range(1, 13)), "chance"]
    assert trouble(figure) == []
    alone = tiny.task.model_copy(update={"chains": 1})  # where the loss at chance is 0
    figure = loss_curves(train(tiny.model_copy(update={"task": alone}), store))
    assert figure.axes[0].get_ylim()[1] > 1


def test_values_beyond_the_axes_of_baselines_are_drawn_at_their_ends() -> None:
    def kept(*shares: float) -> tuple[CurvePoint, ...]:
        return tuple(CurvePoint(arrows=n, hits=0, faithfulness=its) for n, its in enumerate(shares))

    query, value = Role("query"), Role("value")
    scored = tuple(
        ScoredArrow(layer=n, head=0, destination=query, score=score, symbol="x1", hop=1)
        for n, score in enumerate((4.0, 0.5))
    )
    found = Ranking(
        method="EAP-IG", by="row", scored=scored, kept=kept(0, -3, 0.5, 7),
        as_many=kept(0)[0],
    )  # fmt: skip
    (mine,) = kept(9)
    every = Baselines(
        model="", examples=2, switches=Switches(), possible=5, circuit=(Arrow(0, 0, query, value),),
        circuit_kept=mine, rankings=(found,),
    )  # fmt: skip
    figure = baselines_figure(every)
    scores, worth, _ = figure.axes
    assert scores.get_xlim()[1] > 4
    curve, star = worth.lines[:2]
    assert list(curve.get_ydata()) == [0, LOWEST, 0.5, HIGHEST]
    assert list(star.get_ydata()) == [HIGHEST]
    low, high = worth.get_ylim()
    assert low < LOWEST < HIGHEST < high
    assert "beyond -0.5 or 1.5 is drawn there" in figure.caption
    assert trouble(figure) == []  # few arrows are possible, so that its axis is short


@pytest.fixture(scope="module")
def probed(known: Planted) -> Probe:
    return probe(known.model, known.task, 80)


def test_a_probe_has_a_bar_for_each_symbol(probed: Probe) -> None:
    bars = [p for p in probe_figure(probed).axes[0].patches if p.get_width() < 0.5]
    assert len(bars) == (np.nan_to_num(probed.stream.own) > 0.03).sum()
    table = probe_table(probed)
    rows = table.rows
    assert table.columns == ["after", "q", "k0", "v0", "k1", "v1"]
    assert rows[0][:2] == ["layer 3", "x0 x1 x2"]
    assert rows[-1] == ["input", "x0", "x0", "x1", "x1", "x2"]
    # Twins bring the same; what was decodable already is not added.
    brought = added_table(probed).rows
    assert {("0.0", "value 0", "x0 1.00"), ("0.1", "value 0", "x0 1.00")} <= set(brought)
    assert not any(row[2].startswith("x0") for row in brought if row[1] == "query")
    named = tuple(Role("letter", r.fact) if r.kind == "value" else r for r in probed.roles)
    own = probed.model_copy(update={"roles": named})  # roles of a task of one's own are shown, too
    assert probe_table(own).columns == ["after", "q", "k0", "letter", "k1", "l1"]
    assert [row[1:] for row in probe_table(own).rows] == [row[1:] for row in rows]
    counts = {len(probe_figure(each).axes[0].patches) for each in (own, probed)}
    assert len(counts) == 1


def test_a_probe_says_when_the_model_is_at_chance(known: Planted, probed: Probe) -> None:
    fresh = Transformer.seeded(known.model.config, known.model.interface, 0)
    said = "\n".join(probe_remarks(probe(fresh, known.task, 80)))
    assert "answers at chance" in said
    weights = known.model.state_dict()  # it knows, but its answers are the opposite
    fresh.load_state_dict(weights | {"head.weight": -weights["head.weight"]})
    found = probe(fresh, known.task, 80)
    assert (found.at_chance, found.share("query", "x1", found.layers)) == (True, pytest.approx(1))
    assert "can be read" not in probe_remarks(found)[0]
    nowhere = probed.model_copy(
        update={"stream": probed.stream.model_copy(update={"own": probed.stream.own * np.nan})}
    )
    assert "roles that never occur in a chain: key 0, value 0, key 1" in probe_remarks(nowhere)[-1]


def test_a_symbol_that_is_lost_again_is_listed_with_its_last_share() -> None:
    """Of two symbols one is lost after step 10, and one never becomes decodable."""
    own = np.array([[0.0, 0.0], [0.9, 0.3], [0.1, 0.4]])[:, None, None]
    history = ProbeHistory(
        roles=(Role("query"),), symbols=("x1", "x2"), steps=(0, 10, 20), own=own,
        losses=(1.0, 1.0, 1.0), chance=1.0,
    )  # fmt: skip
    assert history_pieces(history)[0].rows == [("query", "x1", "6", "0.10")]


def test_ablations_are_printed_without_changes_and_without_a_rise_below_0() -> None:
    fields = {"of": "the model", "examples": 8, "seed": 0, "chance": 0.5, "model": (0.1,)}
    assert f"{Ablations(**fields, asked=(1,), rows=())}" == "nothing changed  loss 0.1000"
    rise = Estimate(mean=-1e-6, low=-1e-6, high=-1e-6)
    row = Ablated(changed="0.0=mean", losses=(0.1,), rise=rise)
    rows = ablation_table(Ablations(**fields, asked=(1,), rows=(row,)).records(), "").rows
    assert rows[1][-1] == "0.0000 ± 0.0000"
    assert f"{Ablations(**fields, asked=(1,), rows=(row,))}".endswith(
        "\nmeans over 8 examples; rise with its 95 % interval"
    )


def test_arcs_join_equal_symbols_above_and_pairs_below() -> None:
    (axes,) = shared_information(chain_of_facts(5)).axes
    arcs = [patch for patch in axes.patches if isinstance(patch, Arc)]
    assert sum(arc.theta1 == 0 for arc in arcs) == 5  # x_0 … x_4 occur twice, x_5 once
    assert [arc.width for arc in arcs if arc.theta1 == 180] == [1] * 5  # one per pair
    labels = [text.get_text() for text in axes.texts]
    assert labels[:4] + labels[-2:] == ["x₄", "k4", "x₅", "v4", "x₀", "q"]
    named = parse_facts([f"country number {n},year->country number {n + 1}" for n in range(5)])
    for graph in (chain_of_facts(18), chain_of_facts(100), named):
        assert trouble(shared_information(graph)) == []


def test_the_grid_of_a_schedule_has_a_row_per_layer_and_a_cell_per_reading() -> None:
    found = flow(chain_of_facts(3))
    rows = grid(found, found.schedule("x3")).splitlines()
    assert rows[0].split()[:8] == ["layer", "k2", "v2", "k1", "v1", "k0", "v0", "q"]
    assert rows[1].split()[:8] == ["1", "·", "k2", "·", "k1", "·", "k0", "·"]
    assert rows[3].split() == ["3", *"······", "v1", "x0,", "x1,", "x2,", "x3"]
    wide = flow(chain_of_facts(40))
    assert grid(wide, wide.schedule("x40")).startswith("layer 1: value")
    two_keys = flow(parse_facts(["f,i->o"]))
    text = grid(two_keys, two_keys.schedule("o"))
    assert "q1" in text
    assert "k0.1" in text
    found = flow(chain_of_facts(5), causal=False)  # several readings of a layer share a cell
    readings = found.schedule("x5")
    cells = {(reading.layer, reading.destination) for reading in readings}
    assert grid(found, readings).count("+") == len(readings) - len(cells) > 0


LATE = Path(1, 0, Role("query"), Role("value"))
EARLY = Path(0, 2, Role("value"), Role("key"))
NEVER = Path(0, 1, Role("value", 1), Role("key", 1))
STORY = Emergence(
    (LATE, EARLY, NEVER),
    (0, 10, 20, 100),
    np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0], [0.1, 0.1, 0.1, 0.1]]),
    np.array([[0.7, 0.7], [0.6, 0.7], [0.1, 0.7], [0.0, 0.6]]),
    0.75,
    None,
    (14, None),
)


def ticks(axes: Axes) -> list[str]:
    return [tick.get_text() for tick in axes.get_yticklabels()]


def test_marks_stand_where_paths_emerged_and_where_hops_were_learned() -> None:
    (axes,) = order_figure(STORY).axes
    names, (first, second, third) = ticks(axes), (label(EARLY), "x₁ learned", label(LATE))
    assert label(LATE) == "1.0: v0 → q"
    assert names == ["x₂ learned", label(NEVER), third, second, first]
    marks = {names[round(line.get_ydata()[0])]: line.get_xdata()[0] for line in axes.lines}
    assert marks == pytest.approx({first: 5, second: 14, third: 15})
    assert [text.get_text() for text in axes.texts] == ["never", "never"]
    (axes,) = order_figure(replace(STORY, learned_at=None)).axes
    assert len(axes.lines) == 2  # what is not known of hops is not drawn
    (axes,) = order_figure(replace(STORY, learned_at=(14, 4_000))).axes
    bars = [each.get_segments()[0][:, 0].tolist() for each in axes.collections]
    assert [10, 20] in bars  # the checkpoints between which a path emerged
    low, high = axes.get_xlim()  # a late one does not squeeze the others; steps are plain numbers
    shown = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    steps = [each.get_text() for place, each in shown if low <= place <= high]
    assert (axes.get_xscale(), steps) == ("log", ["10", "100", "1,000"])
    start = replace(
        STORY, attention=STORY.attention + np.array([[0], [0.6], [0]]), learned_at=(14, 4_000)
    )
    (axes,) = order_figure(start).axes  # one that is there from step 0 on stands at the left end
    assert axes.lines[-1].get_xdata()[0] == axes.get_xlim()[0]


def test_a_path_without_examples_is_absent_and_a_lost_hop_shows_its_last_loss() -> None:
    values = [[0.0, 0.0, 1.0, 1.0], [0.6, 1.0, 1.0, 0.2], [np.nan] * 4]
    story = replace(STORY, attention=np.array(values))
    again = Emergence.from_dict(json.loads(json.dumps(story.to_dict())))
    assert emergence_pieces(again)[0].rows == [
        ("0.2", "key 0 → value 0", "0", "", "at or before", "0.20"),
        ("1.0", "value 0 → query", "15", "", "10 … 20", "1.00"),
        ("", "hop 1 is learned", "14", "", "", "loss 0.000"),
        ("", "hop 2 is learned", "never", "", "", "loss 0.600"),
    ]


def test_where_no_path_was_measured_losses_are_drawn_and_events_if_there_are_any() -> None:
    story = replace(STORY, attention=np.full_like(STORY.attention, np.nan))
    (axes,) = emergence_figure(story).axes
    assert len(axes.lines) == 2 + 1  # both hops, and chance
    assert ticks(order_figure(story).axes[0]) == ["x₂ learned", "x₁ learned"]
    (none,) = order_figure(replace(story, learned_at=None)).axes
    assert [text.get_text() for text in none.texts] == ["nothing was measured"]


def test_an_emergence_says_over_how_many_examples_it_is_a_mean() -> None:
    counted = replace(STORY, examples=32)
    for draw in (emergence_figure, order_figure):
        assert "32 examples" in draw(counted).caption
        assert "examples" not in draw(STORY).caption
    assert [piece.lines for piece in emergence_pieces(counted)] == [("means over 32 examples",)]


def test_events_of_late_checkpoints_and_the_losses_of_many_hops_stand_apart() -> None:
    late = replace(STORY, steps=tuple(step + 10**6 for step in STORY.steps), learned_at=None)
    for draw in (emergence_figure, order_figure):
        assert draw(late).axes[0].get_xlim()[0] == 10**6
    assert trouble(emergence_figure(replace(STORY, losses=np.tile(STORY.losses, (1, 8))))) == []


def test_attention_of_paths_stands_above_losses() -> None:
    above, below, _ = emergence_figure(STORY).axes
    assert ticks(above) == [label(path) for path in (NEVER, LATE, EARLY)]
    (rows,) = (each for each in above.collections if isinstance(each, QuadMesh))
    assert np.asarray(rows.get_array())[-1].tolist() == [0, 1, 1, 1]
    assert [line.get_xdata()[0] for line in above.lines] == pytest.approx([15, 5])
    hops = {str(line.get_label()): list(line.get_ydata()) for line in below.lines}
    assert (hops["x₁"], hops["chance"]) == ([0.7, 0.6, 0.1, 0.0], [0.75, 0.75])
    assert list(below.lines[0].get_xdata()) == [0, 10, 20, 100]
    high = emergence_figure(replace(STORY, losses=STORY.losses + 5))  # all above chance
    top = high.axes[1].get_ylim()[1]
    assert top > 5
    assert high.caption.endswith(f"The axis of losses ends at {top:.3g}.")


def test_lines_of_many_hops_differ_in_colour_or_dashes() -> None:
    many = replace(STORY, losses=np.ones((4, 20)), learned_at=None)
    history = ProbeHistory(
        roles=(Role("query"),), symbols=tuple(f"x{n}" for n in range(21)), steps=(0, 9),
        own=np.ones((2, 1, 1, 21)), losses=(0.1, 0.1), chance=0.5,
    )  # fmt: skip
    for axes, lines in (
        (emergence_figure(many).axes[1], 20), (history_figure(history).axes[0], 21),
    ):  # fmt: skip
        assert (
            len({(line.get_color(), line.get_linestyle()) for line in axes.lines[:lines]}) == lines
        )


def test_heads_with_the_largest_rise_are_drawn_a_mark_for_each_way() -> None:
    def record(changed: str, loss: float, rise: float | None) -> dict[str, Any]:
        ends = (None, None) if rise is None else (rise - 0.1, rise + 0.1)
        return {"changed": changed, "loss": loss, "rise": rise} | dict(
            zip(("rise_low", "rise_high"), ends, strict=True)
        )

    ways = ("uniform", "itself")
    rows = [
        record(f"{head}.0={way}", 0.1 + at + head / 100, at + head / 100)
        for head in range(MOST + 2)
        for at, way in enumerate(ways)
    ]
    figure = losses_figure([record("the model", 0.1, None), *rows], {0.75}, 16)
    (axes,) = figure.axes
    kept = [f"{head}.0" for head in range(2, MOST + 2)]  # all but the two that rise least
    assert [label.get_text() for label in axes.get_yticklabels()] == ["the model", *kept]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*ways]
    assert f"{MOST} of {MOST + 2} rows" in figure.caption
    (bars,) = axes.containers[1][2]
    left, right = bars.get_segments()[0]
    assert [left[0], right[0]] == pytest.approx([1.02, 1.22])  # 2.0=itself: its rise ± 0.1
    alone = losses_figure(
        [record("the model", -0.1, None), record("1.3=mean", 0.5, 0.4)], {0.75, 0.8}, 8
    )
    assert {0.75, 0.8} <= {line.get_xdata()[0] for line in alone.axes[0].lines}  # of two orders
    assert alone.axes[0].get_xlim()[0] < -0.1  # a user's losses may be below 0
    assert [label.get_text() for label in alone.axes[0].get_yticklabels()][1] == "1.3=mean"
    names = [f"0.{head}=way{number}" for head in range(2) for number in range(5)]
    rows = [record("the model", 0.1, None), *(record(name, 0.5, 0.4) for name in names)]
    many = losses_figure(rows, {0.75}, 8)  # marks of so many ways would be in the rows of others
    assert [label.get_text() for label in many.axes[0].get_yticklabels()][1:] == names
    together = " ".join(f"{layer}.{head}=uniform" for layer in range(4) for head in range(4))
    rows = [record("the model", 0.1, None), record(together, 0.5, 0.4)]
    assert trouble(losses_figure(rows, {0.75}, 8)) == []


def test_a_hop_that_is_asked_alone_has_its_number() -> None:
    last = replace(STORY, losses=STORY.losses[:, :1], learned_at=(14,), hops=(5,))
    assert Emergence.from_dict(last.to_dict()).asked == (5,)
    assert "hops" not in STORY.to_dict()
    assert emergence_pieces(last)[0].rows[-1][1:3] == ("hop 5 is learned", "14")
    assert "x₅ learned" in ticks(order_figure(last).axes[0])
    texts = emergence_figure(last).axes[1].get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["x₅", "chance"]


def test_a_panel_shows_each_head_s_best_route_and_rings_beyond_chance() -> None:
    query, value = Role("query"), Role("value")
    routes = (
        RoleRoute(query, Role("key"), "look-up"), RoleRoute(query, value, "look-up"),
        RoleRoute(Role("answer"), value, "answer"),
    )  # fmt: skip
    own = np.zeros((3, 2, 2))
    own[0, 1, 0], own[1, 1, 0], own[2, 0, 1] = 0.4, 0.9, 0.05
    others = np.zeros_like(own)
    others[1, 1, 0] = 0.2
    scores = HeadScores("tiny", "kind", routes, own, others, np.full(3, 0.1), own, own, 8, 3)
    figure = heads_figure(scores)
    lookups, answers, _ = figure.axes
    assert (lookups.get_title(), answers.get_title()) == ("look-up", "answer")
    shown = np.asarray(lookups.images[0].get_array())
    assert shown.tolist() == [[0, 0], [pytest.approx(0.7), 0]]
    (rings,) = lookups.lines
    assert list(zip(rings.get_xdata(), rings.get_ydata(), strict=True)) == [(0, 1)]
    assert not len(answers.lines[0].get_xdata())  # 0.05 is within chance
    assert "below 0 drawn as 0" in figure.caption
    assert trouble(figure) == []
    assert "8 questions, 3 answered" in figure.caption


ANSWERS = {
    model: [
        with_(answer_row(model, kind, hops), accuracy=(low + high) / 2, interval=(low, high))
        for kind, hops, low, high in rows
    ]
    for model, rows in {
        "small": [("equations-d1", 1, 0.4, 0.7), ("kingdoms", 5, 0.2, 0.4)],
        "large": [("equations-d1", 1, 0.8, 0.9), ("equations-d3", 3, 0.5, 0.7)],
    }.items()
}


def test_accuracies_have_their_intervals_and_the_line_of_guessing() -> None:
    def bars(axes: Axes) -> list[list[float]]:
        """The two ends of each interval: x, y, x, y."""
        lines = [lines for container in axes.containers for lines in container[2]]
        return [[*low, *high] for each in lines for low, high in each.get_segments()]

    figure = results_figure(ANSWERS)
    left, right = figure.axes
    upward = [(round(low), below, above) for low, below, _, above in bars(left)]
    expected = ((1, 0.4, 0.7), (1, 0.8, 0.9), (3, 0.5, 0.7))
    assert upward == [pytest.approx(each) for each in expected]
    ends = [tuple(each[::2]) for each in bars(right)]
    assert ends == [pytest.approx(row.interval) for rows in ANSWERS.values() for row in rows]
    assert ticks(right) == ["equations-d1", "kingdoms", "equations-d3"]
    assert list(left.lines[-1].get_ydata()) == [0.25, 0.25]
    assert legend(figure) == ["small", "large"]


def test_marks_of_many_models_stand_at_their_hops_a_line_for_each_formulation() -> None:
    rows = [
        answer_row("a model", f"equations-d{hops}{opened}", hops)
        for opened in ("", "-opened")
        for hops in (3, 1, 2)
    ]
    name = "an-organisation/a-model-with-a-long-name-{}-instruct.gguf"
    figure = results_figure({name.format(number): rows for number in range(48)})
    hops = [np.asarray(each[0].get_xdata()) for each in figure.axes[0].containers]
    assert len(hops) == 2 * 48
    assert all((np.abs(each - [1, 2, 3]) < 0.3).all() for each in hops)
    assert trouble(figure) == []


def test_the_name_of_a_model_is_no_formula() -> None:
    assert r"$\frac$" in svg(results_figure({r"$\frac$": ANSWERS["small"]}), "salt")


def test_maps_have_a_panel_per_head_and_mark_those_of_the_circuit(
    known: Planted, circuit: Circuit
) -> None:
    maps = attention_maps(known.model, known.task, examples=4)
    figure = role_maps_figure(maps, {at for each in circuit.components for at in each.at})
    titles = {axes.get_title(): axes.title.get_color() for axes in figure.axes if axes.images}
    assert "never occur" not in figure.caption
    assert len(titles) == known.model.config.layers * known.model.config.heads
    assert titles["0.0*"] != titles["1.0"]
    for layers in (5, 13):  # layers of one head need not fill the grid
        shares = np.zeros((layers, 1, 3, 3), np.float32)
        roles = (Role("query"), Role("key"), Role("value"))
        made = RoleMaps(roles, shares, shares, shares[..., 0], shares[..., 0])
        for figure in (role_maps_figure(made), example_figure(shares, ["a", "b", "c"])):
            panels = [axes for axes in figure.axes if axes.images]
            assert [axes.get_title() for axes in panels] == [f"{n}.0" for n in range(layers)]
    assert "chain" not in figure.caption + role_maps_figure(made).caption  # there is one chain
    absent = np.full((1, 1, 3, 3), np.nan, np.float32)  # a role that never occurs is not white
    figure = role_maps_figure(RoleMaps(roles, absent, absent, absent[..., 0], absent[..., 0]))
    assert to_hex(figure.axes[0].get_facecolor()) == FAINT
    assert "Grey: roles that never occur." in figure.caption
    many = tuple(Role(kind, fact) for fact in range(10) for kind in ("key", "value"))[:19]
    shares = np.ones((12, 1, 19, 19), np.float32)
    figure = role_maps_figure(RoleMaps(many, shares, shares, shares[..., 0], shares[..., 0]))
    said = [each.get_text() for axes in figure.axes[:12] for each in axes.get_xticklabels()][:20]
    names = said[: said.index("k0", 1)]  # those that are left out are the same for both chains
    assert 1 < len(names) < 19
    assert said[len(names) : 2 * len(names)] == names


def test_heads_that_cannot_be_divided_into_rows_fill_them() -> None:
    maps = RoleMaps(
        roles=tuple(map(Role, "abc")), own=np.ones((2, 13, 3, 3)), others=np.ones((2, 13, 3, 3)),
        itself=np.ones((2, 13, 3)), previous=np.ones((2, 13, 3)),
    )  # fmt: skip
    figure = role_maps_figure(maps)
    assert len(figure.axes) == 26 + 1
    assert figure.get_figheight() < figure.get_figwidth()


def test_the_axes_of_one_head_have_no_fractions() -> None:
    one = np.zeros((1, 1, 1))
    route = (RoleRoute(Role("query"), Role("value"), "answer"),)
    figure = heads_figure(HeadScores("m", "f1", route, one, one, np.ones(1), one, one, 8, 3))
    assert [place for place in figure.axes[0].get_xticks() if abs(place) <= 0.5] == [0]


def test_of_many_heads_those_of_the_circuit_and_the_least_usual_are_drawn() -> None:
    roles = (Role("query"), Role("key"), Role("value"))
    shares = np.full((16, 16, 3, 3), 0.1, np.float32)
    shares[3, :, 0, 1] = 0.9
    shares[5, 2:, 1, 2] = 0.3
    made = RoleMaps(roles, shares, shares, shares[..., 0], shares[..., 0])
    figure = role_maps_figure(made, [(7, 7)])
    titles = [axes.get_title() for axes in figure.axes if axes.images]
    assert len(titles) == role_maps.MOST
    assert {*titles} >= {"7.7*", *(f"3.{n}" for n in range(16)), *(f"5.{n}" for n in range(2, 16))}
    assert "Only 64 of 256 heads" in figure.caption
    figure = example_figure(shares, ["a", "b", "c"])
    assert len([axes for axes in figure.axes if axes.images]) == role_maps.MOST


PLAN = [("C", 20), ("W", 500), ("a", 50)]
SCALE = StageScale(PLAN)


@given(st.integers(0, 570))
def test_every_stage_is_one_wide_and_a_place_is_that_of_one_epoch(epoch: int) -> None:
    assert SCALE.place(np.array([0, 20, 520, 570])) == pytest.approx([0, 1, 2, 3])
    assert SCALE.epoch(SCALE.place(epoch)) == pytest.approx(epoch, abs=1e-6)


def test_stages_are_means_over_seeds_with_every_end_and_no_crowd() -> None:
    shown = SCALE.shown(np.arange(571))
    assert {0, 20, 520, 570} <= set(shown)
    assert len(shown) < 200
    epochs = np.array([0, 20, 520, 570])
    two = np.array([[0.0, 0.2, 0.4, 0.6], [0.0, 0.4, 0.8, 1.0]])
    one = {"head 1 to lag 1": two[:1]}
    found = Stages(PLAN, epochs, {"{1}": two}, one, two, {"train": two})
    axes = draw_stages(found, "a title").axes
    assert list(axes[0].lines[0].get_ydata()) == pytest.approx([0, 0.3, 0.6, 0.8])
    assert list(axes[1].lines[0].get_ydata()) == pytest.approx([0, 0.2, 0.4, 0.6])
    assert [len(one.collections) for one in axes] == [1, 0, 1, 1]  # one seed has no band
    found = replace(found, plan=[("C", 2_500), ("W", 12_000), ("a", 50)])
    labels = [tick.get_text() for tick in draw_stages(found, "").axes[0].get_xticklabels()]
    assert labels == ["0", "10", "2.5k", "10", "1k", "12k", "50"]


def test_ends_of_many_stages_stand_apart() -> None:
    one = np.linspace(0, 1, 3)[None]
    for count in (4, 8, 20):
        plan = [("CWa"[n % 3], (10, 9_000)[n % 2]) for n in range(count)]
        found = Stages(plan, np.array([0, 10, 9_010]), {"set": one}, {"head": one}, one, {"t": one})
        assert trouble(draw_stages(found, "stages")) == []


def test_the_approach_is_drawn_at_the_epochs_of_the_stage() -> None:
    run = hopscope.open_run("gallery/ngram")
    moments = [Moment(epoch, 0.5 * epoch, 0.3, 0.1 / (1 + epoch)) for epoch in (0, 1, 2, 5)]
    figure = approach_figure(run, [moments], 0.5)
    assert list(figure.axes[0].lines[0].get_xdata()) == [0, 1, 2, 5]
    epochs, predicted = figure.axes[2].lines[1].get_data()
    assert np.diff(predicted) == pytest.approx(2 * np.diff(np.log(epochs)))
    assert "dashed" in figure.caption
    assert "dashed" not in approach_figure(run, [moments], 0.0).caption
    alone = approach_figure(run, [moments[-1:]], 0.5)  # a run with one checkpoint in the stage
    assert [line.get_marker() for line in alone.axes[0].lines] == ["o"]
    assert "dashed" not in alone.caption


def test_numbers_of_many_lags_are_left_out() -> None:
    def lags(count: int) -> Picture:
        run = hopscope.open_run("gallery/ngram")
        shares = np.full((2, 2, count), 0.25)
        model = run.recipe.model.model_copy(update={"window": count, "heads": 2})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(run), "course", lambda *_: SimpleNamespace(attention=shares))
            patch.setattr(type(run), "recipe", run.recipe.model_copy(update={"model": model}))
            return lags_figure(run)

    for count, written in ((4, 8), (12, 24), (16, 0), (64, 0)):
        figure = lags(count)
        assert len(figure.axes[0].texts) == written
        assert trouble(figure) == []


def test_of_many_sets_the_stages_name_the_highest_and_their_legends_fit() -> None:
    """Six heads have 21 sets of one or two, more than a legend has room for."""
    epochs, one = np.array([0, 20, 520, 570]), np.ones((2, 4))
    shares = {f"set {number}": one * number / 21 for number in range(21)}
    figure = draw_stages(Stages(PLAN, epochs, shares, {"head": one}, one, {"train": one}), "many")
    _, names = figure.axes[0].get_legend_handles_labels()
    assert names == [*(f"set {number}" for number in range(16, 21)), "16 others"]
    assert len({line.get_color() for line in figure.axes[0].lines}) == 7  # with the ends of stages
    assert len(figure.axes[0].lines) == 21 + 2
    assert "Grey: those that stay lower" in figure.caption
    assert trouble(figure) == []


SLACK = 0.015
"""Inches by which boxes of texts may meet: they are higher than their letters."""
Make = Callable[[], Mapping[str, Picture]]


def texts(figure: Picture) -> Iterator[tuple[str, np.ndarray]]:
    """What is written in a figure, with left, lower, right and upper end, in inches."""
    with rc_context(LOOK_SETTINGS):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        beyond = set()
        for axis in figure.findobj(Axis):
            ticks = {id(tick) for tick in axis._update_ticks()}  # those that are drawn
            every = (*axis.get_major_ticks(), *axis.get_minor_ticks())
            off = not axis.axes.axison
            gone = [tick for tick in every if off or id(tick) not in ticks]
            beyond |= {id(axis.label), id(axis.offsetText)} if off else set()
            beyond |= {id(label) for tick in gone for label in (tick.label1, tick.label2)}
        for text in figure.findobj(Text):
            shown = text.get_visible() and text.get_text().strip() and id(text) not in beyond
            if shown:
                box = text.get_window_extent(canvas.get_renderer())
                yield text.get_text(), box.extents / figure.dpi


def trouble(figure: Picture) -> list[str]:
    """Texts that stand in each other's way, or leave the figure."""
    found, size = list(texts(figure)), figure.get_size_inches()
    outside = [
        f"{name!r} leaves the figure"
        for name, box in found
        if box[:2].min() < -SLACK or (box[2:] > size + SLACK).any()
    ]
    crossing = [
        f"{one!r} and {other!r} overlap"
        for number, (one, box) in enumerate(found)
        for other, its in found[number + 1 :]
        if (np.minimum(box[2:], its[2:]) - np.maximum(box[:2], its[:2]) > SLACK).all()
    ]
    return outside + crossing


def test_trouble_is_seen() -> None:
    figure = Picture("", "", (2.0, 1.0))
    for place, name in ((0.5, "one"), (0.52, "other"), (0.98, "far too long")):
        figure.text(place, 0.5, name)
    assert trouble(figure) == ["'far too long' leaves the figure", "'one' and 'other' overlap"]


@pytest.fixture(scope="module")
def commands(known: Planted, circuit: Circuit) -> Make:
    """What every command draws."""
    demo, ngram = hopscope.load("gallery/demo"), hopscope.open_run("gallery/ngram")
    title, story = "gallery/demo", demo.emergence(4)
    maps, probed = demo.attention(8), demo.probe(40)
    planted = attention_maps(known.model, known.task, examples=4)
    example = circuitsvis(adapter_of(known.model), examples_of(known.task, 1))
    both = compare("gallery/demo", "gallery/planted", Store())
    moments, other_chains = approach(ngram, 0), transfer(ngram, 0, [10, 100])
    value = RoleRoute(Role("query"), Role("value"), "answer")
    route = (RoleRoute(Role("query"), Role("key"), "look-up"), value)
    zero = np.zeros((2, 30, 9))
    scores = HeadScores("smollm2-135m", "f1", route, zero, zero, np.ones(2), zero, zero, 8, 3)
    return lambda: {
        "maps": role_maps_figure(maps, {(1, 3), (2, 0)}, f"role maps: {title}"),
        "maps of twins": role_maps_figure(planted),
        "example": example_figure(example["attention"], example["tokens"]),
        "circuit": circuit_figure(circuit, of=f"circuit: {title}"),
        "account": circuit_figure(demo.circuit, of=f"circuit: {title}"),
        "circuit by time": circuit_figure(demo.circuit, story, f"circuit: {title}"),
        "emergence": emergence_figure(story, f"emergence: {title}"),
        "order": order_figure(story, f"order: {title}"),
        "probe": probe_figure(probed),
        "show": loss_curves(demo.run),
        "depth": shared_information(Retrieval(hops=5).graph()),
        "compare": comparison_figure(both),
        "stages": stages_figure(ngram),
        "lags": lags_figure(ngram),
        "approach": approach_figure(ngram, [moments], 0.5),
        "transfer": transfer_figure(ngram, [other_chains]),
        "heads": heads_figure(scores),
    }


def tables(*experiments: str) -> Mapping[str, Picture]:
    """What is drawn of these tables of the repository."""
    folder = that_came_with_it()
    results, drawn = PAPERS.results(folder), {}
    for name in experiments:
        table = results.shown(name)
        assert table is not None
        found = figures(table, results.shown)
        assert found, name
        drawn |= {f"{name}-{short}": figure for short, figure in found}
    return drawn


def in_order(make: Make, width: float | None) -> None:
    with looking(width):
        found = make()
    assert {name: lines for name, each in found.items() if (lines := trouble(each))} == {}
    sizes = {text.get_fontsize() for figure in found.values() for text in figure.findobj(Text)}
    assert min(sizes) >= SMALL


def test_long_names_of_roles_stand_apart(circuit: Circuit) -> None:
    kept = json.dumps(circuit.model_copy(update={"task": None}).to_dict())
    for kind, own in (("key", "attribute"), ("value", "predicate")):
        kept = kept.replace(f'"kind": "{kind}"', f'"kind": "{own}"')
    figure = circuit_figure(Circuit.from_dict(json.loads(kept)))
    assert {"attribute", "predicate"} <= {name for name, _ in texts(figure)}
    assert trouble(figure) == []
    names = ("command", "subject", "relation", "attribute", "preamble", "location")
    shares = np.ones((2, len(names), 1))
    found = Probe(
        model="", task=None, measure="R²", roles=tuple(map(Role, names)),
        symbols=("x0",), stream=Decodability(own=shares, half=shares, other_chain=shares,
                                             other_example=shares),
        heads=None, fitted=2, examples=2, seed=0, loss=0.1, chance=0.5,
    )  # fmt: skip
    assert trouble(probe_figure(found)) == []
    absent = found.model_copy(
        update={"stream": found.stream.model_copy(update={"own": shares * np.nan})}
    )
    with pytest.raises(ConfigError, match="no role of the probe occurs in a chain"):
        probe_figure(absent)
    history = ProbeHistory(
        roles=tuple(map(Role, ("the subject of it", "the attribute of it"))), symbols=("x0",),
        steps=(100, 200), own=shares[:2, None, :2], losses=(0.1, 0.1), chance=0.5,
    )  # fmt: skip
    figure = history_figure(history)
    assert trouble(figure) == []
    assert "tsoi the subject of it" in figure.caption


def test_texts_of_a_few_figures_stand_apart_and_are_large_enough(circuit: Circuit) -> None:
    def few() -> Mapping[str, Picture]:
        return {
            "circuit": circuit_figure(circuit, of="circuit: planted"),
            "depth": shared_information(Retrieval(hops=5).graph()),
            **tables("musat/depth", "musat/variants", "chen/growth", "chen/choices"),
        }

    in_order(few, 5.5)


@pytest.mark.slow
@pytest.mark.parametrize("width", [None, 5.5])
def test_texts_of_all_figures_stand_apart_and_are_large_enough(
    commands: Make, width: float | None
) -> None:
    in_order(commands, width)
    in_order(lambda: tables(*PAPERS.experiments), width)
