"""The story of a model as a page: all four chapters, with the numbers that were measured."""

import re
from html import unescape

import hopscope
from hopscope.report.story import story_page
from hopscope.study import Study


def test_the_page_tells_what_was_measured() -> None:
    study: Study = hopscope.load("gallery/demo")
    circuit, story = study.circuit, study.emergence(8)
    text = story_page(study.run, circuit, story, study.maps(16))
    assert re.findall(r"<h2>(.*?)</h2>", text) == [
        "What it learned", "How it works", "When it appeared", "Where every head looks",
    ]  # fmt: skip
    cells = {unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", text)}
    assert {f"{loss:.4f}" for loss in study.run.final_losses().mean(axis=0)} <= cells
    for path, step in story.order:
        assert {f"{path.reader} ← {path.source}", f"{step:,.0f}"} <= cells
    assert f"{circuit.losses.mean('ideal'):.4f} with this attention alone" in text
    assert text.count("<svg ") == 5
    assert not re.search(r"<(script|link|img|iframe)", text)
