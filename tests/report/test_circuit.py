"""Figures, words and the page of a circuit: what they must show, and that nothing is cut off."""

from matplotlib.figure import Figure

from hopscope import load
from hopscope.circuits import Circuit
from hopscope.report.circuit import circuit_figure
from hopscope.report.contents import colour_of


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_figure_has_an_arrow_per_path_and_names_layers_and_roles(circuit: Circuit) -> None:
    figure = circuit_figure(circuit)
    assert len(figure.axes[0].patches) == len(circuit.paths)
    shown = texts(figure)
    assert {"layer 0", "layer 2", "layer 3", "q", "v0", "k1"} <= set(shown)
    assert "layer 1" not in shown  # it does nothing


def test_rows_without_a_path_are_diamonds_in_the_colours_of_what_they_bring() -> None:
    found = load("gallery/transformer-a").circuit
    axes = circuit_figure(found).axes[0]
    diamonds = [line for line in axes.lines if line.get_marker() == "D"]
    at = {(round(line.get_xdata()[0]), line.get_ydata()[0]) for line in diamonds}
    # Layers 1, 4, 5, 7, 8, 9, 10, 11; roles q, k0, v0, k1, v1, v2.
    assert at == {(1, 0.5), (3, 0.5), (4, 0.5), (4, 5.5), (5, 5.5), (4, 6.5), (5, 6.5), (0, 7.5)}
    symbols = found.account.holdings.symbols
    colours = {line.get_markeredgecolor() for line in diamonds if line.get_ydata()[0] == 7.5}
    assert colours == {colour_of(symbols, "x2"), colour_of(symbols, "x3")}
    assert "Diamonds, rows without a path: 1.0 key 0" in circuit_figure(found).caption
