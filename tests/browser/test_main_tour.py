"""What a visitor is told: the task in words, what a pane shows, and six questions in a tour."""

from typing import Any

from tests.browser.lookers import asked, at, measured, opened, ready

QUESTIONS = {
    1: ("What is asked here?", "Asked b0, the model is to answer b1 after 1 hop, b2 after 2 hops."),
    2: ("Which head moves x₂?", "Head 1.3 brings x₂ from value 1 to value 0."),
    3: ("What breaks without it?", "Losses with head 1.3 at value 0 switched off: hop 1 "),
    4: ("When did it appear?", "at step 574; hop 2 was learned at step 595."),
    5: ("Is that all there is?", "Explained: 99.2% recovered"),
    6: ("What does theory allow?", "2 hops need at least 3 layers; this model has 3."),
}


def test_six_questions_are_answered_each_by_an_address(page: Any, explorer: str) -> None:
    opened(page, explorer)
    page.click(".bar button:text('tour')")
    for number, (question, answer) in QUESTIONS.items():
        said = page.locator(".tour p")
        said.filter(has_text=question).wait_for()
        if number in (3, 5):
            said.filter(has_text="at chance 0.750").wait_for()
        ready(page)
        assert answer in said.inner_text(), number
        assert asked(page)["tour"] == str(number)
        if number == 3:
            assert asked(page)["off"] == "1.3:value 0"
            losses = measured(page)
            assert f"→ {losses[1]:.3f}" in said.inner_text()
            shown = page.locator(".strip-below .loss b").all_inner_texts()
            assert shown[1] == f"{losses[1]:.3f}"
            assert page.locator(".loss[data-worse=true]").count() == 1  # the first hop stays
            assert "old" not in page.get_attribute(".nodes", "class")  # they follow
        if number == 4:
            assert asked(page)["step"] == "600"
            page.reload()
        if number < 6:
            page.click(".tour button:text('next')")
    page.click(".tour [aria-label='End the tour']")
    assert asked(page) == {}
    assert not page.is_visible(".tour")
    at(page, "/run/gallery-planted?tour=2")  # a head moves something along two paths
    assert page.inner_text(".tour p").endswith("Other heads that move something: 2.0.")


def test_a_tour_tells_no_losses_of_other_changes(page: Any, explorer: str) -> None:
    opened(page, explorer)
    for number, off in ((3, "head 1.3 at value 0"), (5, "6 heads outside")):
        for changes in ("", "&off=1.2"):
            at(page, f"/run/gallery-demo?tour={number}{changes}")
            assert f"To see the losses with only {off}" in page.inner_text(".tour p")
        page.click(".tour button:text('back')")
        page.click(".tour button:text('next')")
        ready(page)
        assert f"Losses with {off}" in page.inner_text(".tour p")


def test_slider_losses_and_circuit_are_on_one_screen(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    for run in ("demo", "transformer-a"):
        opened(page, explorer, f"/run/gallery-{run}")
        for part in (".slider", ".strip-below .now", ".loss-bars", ".scene", "ol.tokens"):
            box = page.locator(part).bounding_box()
            assert 0 <= box["y"] <= 900 - box["height"], (run, part)


def test_a_pane_says_what_it_shows(page: Any, explorer: str) -> None:
    opened(page, explorer)
    for pane in ("example", "circuit", "heads", "losses", "time"):
        button = page.locator(f"#pane-{pane} .explain")
        assert not page.is_visible(f"#pane-{pane} .meaning")
        button.click()
        assert len(page.inner_text(f"#pane-{pane} .meaning")) > 80
        assert button.get_attribute("aria-expanded") == "true"
        button.click()
        assert not page.is_visible(f"#pane-{pane} .meaning")
    page.click(".example button:text('next')")
    ready(page)
    first = page.locator(".token[data-role=query] b").first.inner_text()
    assert f"Asked {first}," in page.inner_text(".task")
    assert f"x₀ = {first}" in page.inner_text(".task")
    # A head that forms no arrow stands beside its role.
    tag = page.locator('.tag.loose[data-item="0.1:query"]')
    tag.hover()
    assert "0.1 itself → key 0, query" in page.inner_text(".tip")
    tag.click()
    assert asked(page) == {"ex": "1", "off": "0.1:query", "head": "0.1"}
    assert "off" in tag.get_attribute("class")
    boxes = [each.bounding_box() for each in page.locator(".tag").all()]
    middles = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
    assert all(
        abs(a[0] - b[0]) + abs(a[1] - b[1]) > 15 for n, a in enumerate(middles) for b in middles[:n]
    )
