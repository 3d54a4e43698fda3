"""Figures, words and the page of a circuit: what they must show, and that nothing is cut off."""

import re
from dataclasses import replace

import pytest
from matplotlib.figure import Figure
from torch import Tensor

from hopscope.circuits import Circuit, attention_maps, discover, exam_of
from hopscope.circuits.parts import Shared
from hopscope.configs import Retrieval
from hopscope.facts import Role
from hopscope.models.planted import Planted, planted
from hopscope.report.circuit import circuit_figure
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
