"""Role maps as a figure."""

from torch import Tensor

from hopscope.circuits import Circuit, attention_maps, exam_of
from hopscope.models.planted import Planted
from hopscope.report.maps import example_figure, role_maps_figure


def test_maps_have_a_panel_per_head_and_mark_those_of_the_circuit(
    known: Planted, circuit: Circuit
) -> None:
    maps = attention_maps(known.model, known.task, examples=4)
    figure = role_maps_figure(maps, {part.at for part in circuit.parts})
    titles = {axes.get_title(): axes.title.get_color() for axes in figure.axes if axes.images}
    assert len(titles) == known.model.config.layers * known.model.config.heads
    assert titles["0.0*"] != titles["1.0"]
    one = example_figure(known.model.attention(known_inputs(known))[:, 0].numpy(), ["a"] * 10)
    assert len([axes for axes in one.axes if axes.images]) == 8


def known_inputs(known: Planted) -> Tensor:
    return exam_of(known.task, 1).inputs
