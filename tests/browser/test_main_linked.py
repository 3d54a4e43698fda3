"""What is pointed at in one pane lights up in at least two others, by their pixels."""

import io
from typing import Any

import pytest
from PIL import Image, ImageChops

from tests.browser.lookers import opened, ready

PANES = ("example", "circuit", "heads", "losses", "time")
SEEN = 40
"""Pixels that change, at least."""
THINGS = {
    "arrow": ("circuit", '.tag[data-path="1.3 value 1 → value 0"]'),
    "circle of a head": ("circuit", '.chip[data-item="1.3"]'),
    "map of a head": ("heads", '.map[data-head="1.1"]'),
    "path in the legend": ("time", ".time .key >> text=1.3 v1 → v0"),
    "hop in the legend": ("time", ".time .key >> text=hop 2"),
    "loss": ("losses", ".loss-bars .grip >> nth=1"),
    "loss in the strip": ("", ".strip-below .loss >> nth=1"),
    "answer": ("losses", ".answers span.right >> nth=1"),
    "token": ("example", ".token >> nth=3"),
    "cell of a map": ("heads", ".axes canvas"),
}


def pictures(page: Any) -> dict[str, Image.Image]:
    """Each pane as it is seen. A screenshot of one element could scroll, away from the pointer."""
    ready(page)
    boxes = {pane: page.locator(f"#pane-{pane}").bounding_box() for pane in PANES}
    whole = Image.open(io.BytesIO(page.screenshot())).convert("L")
    return {
        pane: whole.crop((at["x"], at["y"], at["x"] + at["width"], at["y"] + at["height"]))
        for pane, at in boxes.items()
    }


@pytest.mark.slow
def test_what_is_pointed_at_lights_up_in_other_panes(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.emulate_media(reduced_motion="reduce")  # colours do not fade
    opened(page, explorer)
    page.evaluate("document.querySelector('.tip').style.visibility = 'hidden'")
    for thing, (own, where) in THINGS.items():
        page.mouse.move(5, 5)
        before = pictures(page)
        page.locator(where).first.hover()
        after = pictures(page)
        changed = set()
        for pane in PANES:
            darker = ImageChops.difference(before[pane], after[pane]).point(lambda its: its > 24)
            if darker.histogram()[1] >= SEEN:
                changed.add(pane)
        assert len(changed - {own}) >= 2, (thing, changed)
