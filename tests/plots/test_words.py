"""Circuits, roles and runs in words, tables in a width, curves in a terminal."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hopscope import load
from hopscope.circuits import Circuit, table_of
from hopscope.configs import Experiment, Model, NgramExperiment
from hopscope.papers import preset
from hopscope.plots.layout import hanging, laid_out, wrapped
from hopscope.plots.names import described, run_title
from hopscope.plots.symbols import seed_text
from hopscope.plots.terminal import plot, sparkline
from hopscope.plots.words import circuit_grid, component_table, remarks, score_table, sharing_table
from hopscope.store import Store


def test_the_grid_says_who_reads_whom_and_which_rows_have_no_path(circuit: Circuit) -> None:
    lines = circuit_grid(circuit).splitlines()
    assert lines[0].split() == ["layer", "q", "k0", "v0", "k1", "v1"]
    assert lines[1].split() == ["3", "v1·0+v1·1", "·", "·", "·", "·"]
    for name, last in (
        ("demo", ["0", "self·1", "self·1", "k0·1", "·", "k1·1"]),
        ("transformer-b", ["1", "pos", "pos", *"·····"]),
    ):
        assert circuit_grid(load(f"gallery/{name}").circuit).splitlines()[-1].split() == last


def test_rows_of_a_circuit_say_what_is_lost_and_how_faithful_it_is(circuit: Circuit) -> None:
    rows = component_table(circuit).rows
    assert [row[0] for row in rows] == [each.name for each in circuit.components]
    twins = next(row for row in rows if row[0] == "3.0+1")
    assert twins[1:3] == ("value 1 → query", "moves")
    lost = next(each.lost for each in circuit.components if each.name == "3.0+1")
    assert lost is not None
    assert twins[3].startswith(f"{lost.mean:.1%}")
    unknown = circuit.components[0].model_copy(update={"lost": None, "kind": None})
    shown = component_table(circuit.model_copy(update={"components": (unknown,)})).rows
    assert shown[0][2:4] == ("–", "–")
    scores = score_table(circuit).rows
    assert [row[:2] for row in scores] == [(s.attention, s.rest) for s in circuit.scores]
    assert scores[0][3].startswith("R² 1.000")
    # A quarter and three quarters of what the component is worth: the loss is quadratic.
    assert sharing_table(circuit).rows[-2:] == [
        (f"3.{head}", "value 1 → query", "14.0% ± 0.0", "42.1% ± 0.0") for head in (0, 1)
    ]


def test_remarks_doubt_what_is_not_sufficient(circuit: Circuit) -> None:
    assert remarks(circuit) == ["0.0+1 is a previous-token head"]
    ablated = circuit.losses.ablated
    bad = circuit.losses.model_copy(update={"computed": ablated})
    said = remarks(circuit.model_copy(update={"losses": bad}))
    assert said[-1].startswith("computed attention recovers less than 95%")
    worse = circuit.losses.model_copy(update={"prescribed": ablated})
    said = remarks(circuit.model_copy(update={"losses": worse}))
    assert said[-1] == "prescribed attention recovers less than 95%"
    table = circuit.components[0].model_copy(update={"target": table_of("position", (0, 0))})
    said = remarks(circuit.model_copy(update={"components": (table,)}))
    assert f"no rule describes {table.name} by position" in said


def test_a_run_is_called_by_its_tags_or_its_preset_and_never_by_its_hash(store: Store) -> None:
    own = store.create(preset("demo").recipe)
    shape = "retrieval, 2 hops, 3 layers × 4 heads, seed 0"
    assert run_title(own) == f"demo: {shape}"
    store.tag(own.name, "baseline", "a")
    assert run_title(own) == f"a, baseline: {shape}"
    other = store.create(Experiment(model=Model(layers=1, heads=1), seeds=(3, 4)))
    assert run_title(other) == described(other.recipe)
    assert described(other.recipe).endswith("1 layer × 1 head, 2 seeds")
    assert described(NgramExperiment()) == NgramExperiment().title()
    assert (seed_text((7,)), seed_text((7, 8))) == ("seed 7", "2 seeds")


WORDS = st.lists(st.text("abc日", min_size=1, max_size=9), max_size=6).map(" ".join)


@given(WORDS, st.integers(10, 60))
def test_wrapping_and_hanging_keep_all_words_and_their_order(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    for one, other in pairwise(lines):  # no word would have fitted above
        assert cell_len(f"{one} {other.split()[0]}") > width
    first, *rest = hanging(text, width)
    assert [*first.split(), *(word for line in rest for word in line.split())] == text.split()
    assert all(line.startswith("  ") and line[2:3].strip() for line in rest)
    for line in (*lines, first, *rest):
        assert cell_len(line) <= width or " " not in line.strip()


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4), st.integers(10, 60))
def test_no_word_of_a_table_is_ever_cut(rows: list[tuple[str, ...]], width: int) -> None:
    lines = laid_out(["one", "two", "three"], rows, width)
    found = sorted(" ".join(lines).split())
    wanted = sorted(word for row in rows for cell in row for word in cell.split())
    if lines and lines[0].startswith("one  "):
        assert found == sorted([*wanted, "one", "two", "three"])
        assert all(cell_len(line) <= width for line in lines)
    else:
        assert [word for word in found if word not in ("one:", "two:", "three:")] == wanted


def test_sparklines_shrink_and_clip() -> None:
    for values, width, shown in (
        ([], 40, ""),
        ([0.0, 0.5, 1.0, 2.0, -1.0], 5, "▁▅██▁"),
        ([0.0] * 50 + [1.0] * 50, 4, "▁▁██"),
        ([0.0, np.nan, 1.0], 3, "▁ █"),  # what is no number leaves a gap
    ):
        assert sparkline(np.array(values), width=width) == shown


def test_the_plot_puts_each_hop_where_its_loss_is() -> None:
    steps = np.arange(1, 129)
    losses = np.stack([np.linspace(1, 0, 128), np.full(128, 0.75)], axis=1)
    lines = plot(steps, losses, levels=[0.75]).splitlines()
    assert lines[-1].split() == ["0", "step", "128"]
    assert "│11" in lines[1]
    assert lines[11].endswith("11")
    level = next(line for line in lines if line.startswith(" 0.75"))
    assert level.count("2") >= 56
    values = np.array([[0.0], [np.nan], [1.0]])
    few = plot(np.arange(3), values, [0.75]).splitlines()  # three steps fill the axis; one is a gap
    assert few[11].endswith("│" + "1" * 22 + " " * 42)
    assert few[1].endswith("│" + " " * 43 + "1" * 21)
    assert "1" not in "".join(plot(np.arange(3), values * np.nan, [0.75]).split("│"))
    last = plot(np.arange(5), np.ones((5, 1)), [0.75], width=20, hops=[5]).splitlines()
    assert last[1].endswith("│" + "5" * 12)  # a hop that is asked alone has its number


def test_the_plot_is_as_high_as_what_it_shows() -> None:
    steps = np.arange(1, 65)
    high = plot(steps, np.full((64, 1), 4.0), levels=[0.75]).splitlines()
    assert high[0].split("│")[0].strip() == "4.2"
    assert "1" * 64 in high[1]
    assert next(line for line in high if "·" in line).startswith(" 0.75")
    low = plot(steps, np.full((64, 1), 0.03), levels=[0.0117]).splitlines()
    assert "1" * 64 in low[1]
    assert next(line for line in low if "·" in line).startswith("0.012")
    assert low[11].startswith("    0")
