"""A view is kept beside its run under a name, chosen as often as somebody likes, and removed."""

from pathlib import Path
from typing import Any

from short import FLEET, ID

from hopscope.store import Store
from tests.browser.lookers import TOKEN, asked, held, learned, pressed, ready, served, until

VIEWS = '[aria-label="Kept views"]'


def test_a_view_is_kept_and_chosen_twice(page: Any, tmp_path: Path) -> None:
    Store(tmp_path).create(FLEET)
    names = iter(["a/b", "one view"])
    page.on("dialog", lambda dialog: dialog.accept(next(names)))
    with served(tmp_path) as site:
        page.goto(f"{site}/#token={TOKEN}&/run/{ID}?ex=3")
        assert asked(page) == {"ex": "3"}
        page.click("text=keep")
        page.wait_for_selector(".error:visible")
        said = page.inner_text(".error span")
        assert said.startswith("the view is called 'a/b'; expected up to 60 letters, digits")
        learned(page, ID)  # and the line stays
        assert page.inner_text(".error span") == said
        page.click("text=keep")
        page.wait_for_selector(VIEWS)
        page.wait_for_selector(".error", state="hidden")
        for _ in range(2):
            assert pressed(page, "n") == {"ex": "4"}
            page.select_option(VIEWS, "one view")
            assert (asked(page), page.input_value(VIEWS)) == ({"ex": "3"}, "")
        opening = held(page, "**/api/runs/gallery-planted")  # meanwhile the views are of this run
        page.click('.runs a[href="#/run/gallery-planted"]')
        until(page, lambda: opening)
        page.select_option(VIEWS, "remove: one view")
        page.wait_for_selector(VIEWS, state="detached")
        opening[0].continue_()
        page.go_back()
        ready(page)
        page.wait_for_selector(VIEWS, state="detached")
        page.goto("about:blank")  # asks nothing more of a server that ends
