"""Figures, words and the page of a circuit: what they must show, and that nothing is cut off."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from torch import Tensor

from hopscope.circuits import Circuit, attention_maps, discover, exam_of
from hopscope.circuits.parts import Shared
from hopscope.circuits.reading import contents
from hopscope.configs import KHop, Model, Retrieval
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.report.circuit import circuit_figure
from hopscope.report.contents import (
    brought_rows,
    contents_figure,
    contents_remarks,
    contents_rows,
)
from hopscope.report.maps import example_figure, role_maps_figure
from hopscope.report.page import Section, figure_html, list_html, page, table_html
from hopscope.report.words import circuit_grid, ordered_roles, remarks


@pytest.fixture(scope="module")
def known() -> Planted:
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    return planted(task, twins=True, spare_layers=[1])


@pytest.fixture(scope="module")
def circuit(known: Planted) -> Circuit:
    return discover(known.model, known.task, examples=16)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_figure_has_an_arrow_per_path_and_names_layers_and_roles(circuit: Circuit) -> None:
    figure = circuit_figure(circuit)
    assert len(figure.axes[0].patches) == len(circuit.paths)
    shown = texts(figure)
    assert {"layer 0", "layer 2", "layer 3", "q", "v0", "k1"} <= set(shown)
    assert "layer 1" not in shown  # it does nothing


def test_the_grid_says_who_reads_whom(circuit: Circuit) -> None:
    lines = circuit_grid(circuit).splitlines()
    assert lines[0].split() == ["layer", "q", "k0", "v0", "k1", "v1"]
    assert lines[1].split() == ["3", "v1·0+v1·1", "·", "·", "·", "·"]


def test_remarks_name_twins_and_stand_ins(circuit: Circuit) -> None:
    said = "\n".join(remarks(circuit))
    assert "shared: 3.0, 3.1 all do query ← value 1" in said
    assert "could stand in: layer 0" in said
    assert "along these paths the query learns x1, x2" in said


def test_remarks_say_what_is_not_explained(circuit: Circuit) -> None:
    losses = circuit.losses.model_copy(update={"ideal": (0.5, 0.5)})
    assert circuit.flow is not None
    flow = circuit.flow.model_copy(
        update={"reached": (), "missed": ("x1",), "jumps": circuit.paths[:1]}
    )
    said = "\n".join(remarks(circuit.model_copy(update={"losses": losses, "flow": flow})))
    assert "not all is explained: 0.500 with this attention alone" in said
    assert "the query learns nothing, but not x1" in said
    assert "found by no key that is known: layer 0" in said
    assert isinstance(circuit.shared[0], Shared)


def test_maps_have_a_panel_per_head_and_mark_those_of_the_circuit(
    known: Planted, circuit: Circuit
) -> None:
    maps = attention_maps(known.model, known.task, examples=4)
    figure = role_maps_figure(maps, {part.at for part in circuit.parts})
    titles = {axes.get_title(): axes.title.get_color() for axes in figure.axes if axes.images}
    assert len(titles) == known.model.config.layers * known.model.config.heads
    assert titles["0.0"] != titles["1.0"]
    one = example_figure(known.model.attention(known_inputs(known))[:, 0].numpy(), ["a"] * 10)
    assert len([axes for axes in one.axes if axes.images]) == 8


def known_inputs(known: Planted) -> Tensor:
    return exam_of(known.task, 1).inputs


def test_a_page_needs_no_network_and_escapes_what_it_shows(circuit: Circuit) -> None:
    figure = figure_html(circuit_figure(circuit), 'a "circuit"', "one")
    text = page(
        "t <1>", "s", [Section("a & b", "c", [figure, table_html(["h"], [["<x>"]]), list_html([])])]
    )
    assert "t &lt;1&gt;" in text
    assert "&lt;x&gt;" in text
    assert 'aria-label="a &quot;circuit&quot;"' in text
    assert not re.search(r"<(script|link|img|iframe)|src=", text)
    names = r"w3\.org|matplotlib\.org|purl\.org|creativecommons\.org"  # of SVG's vocabularies
    assert all(re.search(names, url) for url in re.findall(r"https?://[^\s\"<]+", text))


def test_figures_of_one_page_do_not_share_ids(circuit: Circuit) -> None:
    ids = [
        set(re.findall(r'id="([^"]+)"', figure_html(circuit_figure(circuit), "x", name)))
        for name in ("one", "two")
    ]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_decoys_and_further_queries_have_their_place(circuit: Circuit) -> None:
    decoy, query = Role("decoy key", 1), Role("query", 1)
    part = circuit.parts[0]  # a layer below the query's looks
    path = replace(part.paths[0], reader=query, source=decoy)
    more = circuit.model_copy(
        update={
            "parts": (part.model_copy(update={"paths": (path,)}), *circuit.parts[1:]),
            "roles": (*circuit.roles, decoy, query),
        }
    )
    assert [str(role) for role in ordered_roles(more)][:2] == ["query", "query 1"]
    assert ordered_roles(more)[-1] == decoy
    assert len(circuit_figure(more).axes[0].patches) == len(more.paths)
    assert "d1" in circuit_grid(more).splitlines()[0].split()


def test_contents_have_a_bar_for_each_symbol_that_is_held(known: Planted) -> None:
    found = contents(known.model, known.task, 80)
    bars = [p for p in contents_figure(found).axes[0].patches if p.get_width() < 0.5]
    held = np.nan_to_num(found.stream.own) > 0.03
    assert len(bars) == held.sum()
    columns, rows = contents_rows(found)
    assert columns == ["after", "q", "k0", "v0", "k1", "v1"]
    assert rows[0][:2] == ["layer 3", "x0 x1 x2"]
    assert rows[-1] == ["input", "x0", "x0", "x1", "x1", "x2"]
    # Twins bring the same; what a role holds already, it is not brought.
    assert ("0.0", "value 0", "x0 1.00") in brought_rows(found)
    assert ("0.1", "value 0", "x0 1.00") in brought_rows(found)
    assert not any(row[2].startswith("x0") for row in brought_rows(found) if row[1] == "query")


def test_an_untrained_model_is_said_to_guess(known: Planted) -> None:
    fresh = Transformer.seeded(known.model.config, known.model.interface, 0)
    said = "\n".join(contents_remarks(contents(fresh, known.task, 80)))
    assert "this model answers at guessing level (loss" in said
    tokens = KHop(hops=1, length=9, alphabet=3)
    model = Transformer.seeded(Model(layers=1, heads=1, d_model=8), tokens.interface(), 0)
    found = contents(model, tokens, 40)
    assert brought_rows(replace(found, heads=None)) == []
    assert "of another chain" not in "\n".join(contents_remarks(found))
    nowhere = replace(found, stream=replace(found.stream, own=found.stream.own * np.nan))
    assert "in no chain of these examples: key 0, value 0, query" in contents_remarks(nowhere)[-1]
