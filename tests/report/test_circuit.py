"""Figures, words and the page of a circuit: what they must show, and that nothing is cut off."""

from matplotlib.figure import Figure

from hopscope.circuits import Circuit
from hopscope.report.circuit import circuit_figure


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_figure_has_an_arrow_per_path_and_names_layers_and_roles(circuit: Circuit) -> None:
    figure = circuit_figure(circuit)
    assert len(figure.axes[0].patches) == len(circuit.paths)
    shown = texts(figure)
    assert {"layer 0", "layer 2", "layer 3", "q", "v0", "k1"} <= set(shown)
    assert "layer 1" not in shown  # it does nothing
