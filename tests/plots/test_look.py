"""Colours that survive print and colour blindness, a width that is set around what draws, and
files: text that is text, a title and a caption, and the reader's light or dark.

Distances are those of OKLab, in which 0.02 is about what can just be told apart. How colours look
to people without one kind of cones is simulated by the matrices of Machado et al. (2009).
"""

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.colors import to_hex, to_rgb
from PIL import Image

import hopscope
from hopscope.circuits import Circuit
from hopscope.errors import ConfigError
from hopscope.plots.circuit import circuit_figure
from hopscope.plots.look import COLOURS, DARK, LIGHT, Palette, Picture, drawn, looking, picture
from hopscope.plots.saving import save_figure, svg, theme, themed

TO_CONES = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.63]])
TO_LAB = np.array([[0.2105, 0.7936, -0.0041], [1.978, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
SEEN_WITHOUT = {
    "none": np.eye(3),
    "red": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]],
    "green": [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "blue": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


def test_symbols_have_the_same_colours_on_the_page() -> None:
    """The style sheet of the explorer, in light and in dark."""
    sheet = Path(hopscope.__file__).parent / "web/static/colours.css"
    said = re.findall(r"--hop-\d: light-dark\((#\w+), (#\w+)\)", sheet.read_text())
    assert said == list(zip(LIGHT.lines, DARK.lines, strict=True))


def linear(colour: str) -> np.ndarray:
    """Amounts of light, red, green and blue."""
    value = np.array(to_rgb(colour))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def grey(colour: str) -> float:
    """How light it is when it is printed without colour: L*, 0 to 100."""
    return float(116 * np.cbrt(luminance(colour)) - 16)


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def distance(one: str, other: str, without: str) -> float:
    seen = (np.clip(np.array(SEEN_WITHOUT[without]) @ linear(each), 0, 1) for each in (one, other))
    labs = [TO_LAB @ np.cbrt(TO_CONES @ light) for light in seen]
    return float(np.linalg.norm(labs[0] - labs[1]))


@PALETTES
def test_lines_are_seen_on_their_ground_and_told_apart(palette: Palette) -> None:
    assert min(contrast(colour, palette.paper) for colour in palette.lines) >= 3
    pairs = list(combinations(palette.lines, 2))
    first = list(combinations(palette.lines[:4], 2))
    for without in SEEN_WITHOUT:
        assert min(distance(*pair, without) for pair in pairs) > 0.05
        assert min(distance(*pair, without) for pair in first) > 0.11
    assert min(abs(grey(one) - grey(other)) for one, other in pairs) > 2.5
    assert min(abs(grey(one) - grey(other)) for one, other in first) > 5.5


@PALETTES
def test_text_and_moments_are_seen(palette: Palette) -> None:
    assert contrast(palette.ink, palette.paper) > 12
    assert contrast(palette.dim, palette.paper) > 4.5  # small text, WCAG AA
    assert min(contrast(colour, palette.paper) for colour in palette.times) >= 3
    steps = [grey(colour) for colour in palette.amounts]
    assert steps == sorted(steps) or steps == sorted(steps, reverse=True)


@drawn
def small() -> Picture:
    figure = picture("a title", "What it\n   shows.", 2.0)
    figure.subplots().plot([0, 1], color=COLOURS[1])
    return figure


def test_the_width_is_that_around_the_call_and_the_style_leaves_no_trace() -> None:
    before = dict(rcParams)
    with looking(5.5):
        asked = small()
    best = small()
    assert dict(rcParams) == before
    assert (asked.get_size_inches()[0], best.get_size_inches()[0]) == (5.5, 3.35)
    assert to_hex(best.get_facecolor()) == LIGHT.paper
    assert best.caption == "What it shows."
    assert not [text for text in best.texts if text.get_text()]  # no title
    with pytest.raises(ConfigError, match="cannot be 2 inches wide"), looking(2.0):
        small()


SVG = "{http://www.w3.org/2000/svg}"


def saved(circuit: Circuit, path: Path, width: float | None = None, dpi: int = 300) -> bytes:
    with looking(width):
        return save_figure(circuit_figure(circuit, of="A & B"), path, dpi).read_bytes()


def test_svg_has_text_that_can_be_searched_a_title_and_a_caption(
    circuit: Circuit, tmp_path: Path
) -> None:
    first = saved(circuit, tmp_path / "a.svg")
    root = ET.fromstring(first)
    texts = ["".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")]
    assert {"layer 0", "v0", "moves content"} <= set(texts)
    assert root.findtext(f"{SVG}title") == "A & B"
    assert root.findtext(f"{SVG}desc", "").startswith("An arrow leads from the source")
    assert saved(circuit, tmp_path / "a.svg") == first


def test_pdf_has_fonts_that_venues_take_and_says_what_it_is(
    circuit: Circuit, tmp_path: Path
) -> None:
    text = saved(circuit, tmp_path / "a.pdf")
    assert b"/Subtype /Type3" not in text
    assert b"/FontFile2" in text  # TrueType, which is what type 42 wraps
    assert b"/Title" in text
    assert b"/Subject" in text
    assert b"/CreationDate" not in text  # the same figure, the same bytes


def test_png_is_as_wide_and_as_fine_as_asked(circuit: Circuit, tmp_path: Path) -> None:
    for asked, inches in ((None, 3.35), (5.5, 5.5)):
        saved(circuit, tmp_path / "a.png", asked, 100)
        with Image.open(tmp_path / "a.png") as image:
            assert image.width == round(100 * inches)
            assert image.info["Title"] == "A & B"
            assert f"#{image.convert('RGB').tobytes()[:3].hex()}" == LIGHT.paper


def test_every_colour_of_a_figure_has_a_name(circuit: Circuit) -> None:
    text = themed(svg(circuit_figure(circuit), "salt"))
    bare = re.findall(r"(?:fill|stroke): #[0-9a-f]{6}(?!; (?:fill|stroke): var)", text)
    assert bare == []
    names = set(re.findall(r"var\((--hopscope-\d+),", text))
    assert names
    assert names <= set(re.findall(r"(--hopscope-\d+):", theme(DARK)))
