"""The colours that a browser gives figures: those of its reader's light or dark."""

import re
from pathlib import Path
from typing import Any

import pytest

from hopscope.circuits import Circuit, discover
from hopscope.models.planted import Planted
from hopscope.plots.circuit import circuit_figure
from hopscope.plots.look import DARK, LIGHT
from hopscope.plots.page import figure_html, section_html
from hopscope.plots.page import page as html
from hopscope.plots.saving import save_figure

GIVEN = """
Array.from(document.querySelectorAll("svg path, svg use, svg text"), each => getComputedStyle(each))
  .flatMap(style => [style.fill, style.stroke])
"""
"""The colours of all lines, areas and letters."""


@pytest.fixture(scope="module")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=16)


@pytest.mark.slow
def test_figures_have_the_colours_of_light_and_dark(
    page: Any, tmp_path: Path, circuit: Circuit
) -> None:
    report = tmp_path / "page.html"
    report.write_text(
        html("A page", "", [section_html("A figure", "", [figure_html(circuit_figure(circuit))])])
    )
    file = save_figure(circuit_figure(circuit), tmp_path / "figure.svg")
    for shown in (report, file):
        for scheme, palette in (("light", LIGHT), ("dark", DARK)):
            page.emulate_media(color_scheme=scheme)
            page.goto(shown.as_uri())
            given = {_hex(colour) for colour in page.evaluate(GIVEN) if colour != "none"}
            assert {palette.paper, palette.ink} <= given <= {*palette.cycle()}, (shown, scheme)


def _hex(colour: str) -> str:
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"
