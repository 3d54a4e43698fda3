"""Role maps as a figure."""

import numpy as np
import pytest
from torch import Tensor

from hopscope.circuits import Circuit, RoleMaps, attention_maps, exam_of
from hopscope.facts import Role
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


def test_labels_that_are_left_out_are_the_same_in_both_halves() -> None:
    roles = tuple(Role(kind, fact) for fact in range(10) for kind in ("key", "value"))[:19]
    rows = np.zeros((12, 1, len(roles), len(roles)), np.float32)
    nothing = np.zeros((12, 1, len(roles)), np.float32)
    figure = role_maps_figure(RoleMaps(roles, rows, rows, nothing, nothing))
    (said, *_) = [
        [label.get_text() for label in axes.get_xticklabels()]
        for axes in figure.axes
        if axes.images and any(label.get_text() for label in axes.get_xticklabels())
    ]
    assert len(said) < 2 * len(roles)
    assert said[: len(said) // 2] == said[len(said) // 2 :]


@pytest.mark.parametrize("layers", [5, 7, 13])
def test_layers_of_one_head_need_not_fill_the_grid(layers: int) -> None:
    roles = (Role("query"), Role("key"), Role("value"))
    shares = np.zeros((layers, 1, 3, 3), np.float32)
    maps = role_maps_figure(RoleMaps(roles, shares, shares, shares[..., 0], shares[..., 0]))
    one = example_figure(np.zeros((layers, 1, 3, 3)), ["a", "b", "c"])
    for figure in (maps, one):
        figure.draw_without_rendering()
        panels = [axes for axes in figure.axes if axes.images]
        assert [axes.get_title() for axes in panels] == [f"{layer}.0" for layer in range(layers)]
        named = [axes for axes in panels if axes.get_xticklabels()]
        columns = {axes.get_subplotspec().colspan.start for axes in panels}
        assert {axes.get_subplotspec().colspan.start for axes in named} == columns
        assert len(named) == len(columns)


def known_inputs(known: Planted) -> Tensor:
    return exam_of(known.task, 1).inputs
