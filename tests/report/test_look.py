"""Colours that survive print and colour blindness, and a look that is set around what draws.

Distances are those of OKLab, in which 0.02 is about what can just be told apart. How colours look
to people without one kind of cones is simulated by the matrices of Machado et al. (2009).
"""

from itertools import combinations

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.colors import to_hex, to_rgb

from hopscope.report.look import COLOURS, DARK, LIGHT, Look, Palette, drawn, looking, picture

TO_CONES = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.63]])
TO_LAB = np.array([[0.2105, 0.7936, -0.0041], [1.978, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
SEEN_WITHOUT = {
    "none": np.eye(3),
    "red": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]],
    "green": [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "blue": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


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


def test_the_measures_know_what_is_known() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#fde725", "#ffffff") < 1.3  # the yellow that nobody saw
    assert grey("#ffffff") == pytest.approx(100)
    assert distance("#ff0000", "#00ff00", "none") > 0.4
    assert distance("#8a6d00", "#a35a00", "green") < 0.06 < distance("#3f7cf7", "#af8229", "green")


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
def small() -> object:
    figure = picture("a title", "What it\n   shows.", 2.0)
    figure.subplots().plot([0, 1], color=COLOURS[1])
    return figure


def test_the_look_is_that_around_the_call_and_leaves_no_trace() -> None:
    before = dict(rcParams)
    with looking(Look("dark", 2)):
        dark = small()
    light = small()
    assert dict(rcParams) == before
    assert (dark.get_size_inches()[0], light.get_size_inches()[0]) == (6.9, 3.35)
    assert to_hex(dark.get_facecolor()) == DARK.paper
    assert to_hex(light.get_facecolor()) == LIGHT.paper
    assert light.caption == "What it shows."
