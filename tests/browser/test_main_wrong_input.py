"""What the page makes of addresses and input that do not fit: a line, and never an empty page."""

from pathlib import Path
from typing import Any

from hopscope.web.questions import VIEWABLE
from hopscope.web.token import Once
from tests.browser.lookers import TOKEN, asked, at, opened, pressed, ready, served


def test_an_address_that_does_not_fit_hides_nothing(page: Any, explorer: str) -> None:
    """A pane that the run does not have; one with a token, pasted into an open page; none."""
    opened(page, explorer, "/run/gallery-planted")
    page.hover("#pane-heads h2")
    page.evaluate("location.hash = '#/run/gallery-ngram?step=99'")
    assert asked(page) == {"step": "99"}  # the nearest epoch is shown
    assert not page.is_visible(".error")
    pressed(page, "f")  # nor can the pane that is gone be maximised
    assert page.locator(".pane:visible").count() == 1
    for pane in ("foo", "fleet"):
        page.evaluate(f"location.hash = '#/run/gallery-demo?pane={pane}'")
        ready(page)
        assert page.is_visible(".scene")
        assert page.is_visible(".tokens")
    with page.expect_navigation():
        page.evaluate(f"location.hash = '#token={TOKEN}&/run/gallery-planted?ex=2'")
    page.wait_for_url("**/#/run/gallery-planted?ex=2")  # without it
    ready(page)
    page.click(".mark")
    ready(page)
    assert page.url.endswith("#/run/gallery-demo")
    assert page.is_disabled("text=keep")  # in the gallery there are no views of anybody


def test_a_run_that_cannot_be_opened_leaves_no_other_on_the_page(
    page: Any, explorer: str, requests: list[str], forgiven: list[str]
) -> None:
    """It is the same page as after a reload, and the run before can be opened again."""
    forgiven.append("404")  # the browser notes an answer that is no 200
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    page.evaluate("location.hash = '#/run/nosuchrun'")
    page.wait_for_selector(".error:visible")
    for _ in range(2):
        ready(page)
        assert (page.inner_text("h1"), page.title()) == ("no run", "hopscope")
        assert "there is no run 'nosuchrun'" in page.inner_text(".error")
        assert page.is_visible(".nothing")
        assert not page.locator(".pane:visible").count()
        page.reload()
    page.click('.runs a[href="#/run/gallery-demo"]')
    page.wait_for_selector(".scene:visible")
    for address in ("nosuchrun", "nosuchrun?step=3"):
        page.evaluate(f"location.hash = '#/run/{address}'")
        page.wait_for_selector(".nothing:visible")
        ready(page)
    page.click('.runs a[href="#/run/gallery-demo"]')
    page.wait_for_selector(".scene:visible")
    ready(page)
    assert not page.is_visible(".error")
    assert not [url for url in requests if "nosuchrun/" in url]  # once refused, no more is asked


def test_the_last_example_has_no_next(page: Any, explorer: str) -> None:
    opened(page, explorer, f"/run/gallery-demo?ex={VIEWABLE - 1}")
    assert page.get_attribute(".example button:text('next')", "aria-disabled") == "true"
    assert pressed(page, "n") == {"ex": f"{VIEWABLE - 1}"}
    page.evaluate(f"location.hash = '#/run/gallery-demo?ex={VIEWABLE}'")
    assert asked(page) == {}
    assert f"ex={VIEWABLE}" in page.inner_text(".error")
    for go in ("location.hash = '#/run/gallery-demo?ex=3'", "hopscope.state.set({ head: '1.3' })"):
        page.evaluate(go)
        page.wait_for_selector(".error", state="hidden")
        page.evaluate(f"location.hash = '#/run/gallery-demo?ex={VIEWABLE}'")
        page.wait_for_selector(".error:visible")
        ready(page)


def test_an_address_opens_one_tab(page: Any, tmp_path: Path) -> None:
    """What the browser keeps in its history opens no other."""
    once = Once(TOKEN)
    with served(tmp_path / "runs", once) as address:
        url = f"{address}/#once={once.word}&/run/gallery-planted"
        page.goto(url)
        ready(page)
        assert page.url == f"{address}/#/run/gallery-planted"
        page.reload()
        ready(page)
        other = page.context.new_page()
        other.goto(url)
        other.wait_for_selector(".error:visible")
        assert "open the newest address that hopscope printed" in other.inner_text(".error")
        other.close()
        page.goto("about:blank")  # asks nothing more of a server that ends


def test_a_search_and_a_sequence(page: Any, explorer: str) -> None:
    """What is not there is said where it was typed; it is given up by Escape, and can be left. Who
    types a sequence, one letter after the other, keeps the keyboard.
    """
    opened(page, explorer, "/run/gallery-demo?pane=heads")
    for typed, said in (("9.9", "This run has no head and no path called 9.9."), ("1.2", "")):
        page.fill(".find", typed)
        page.press(".find", "Enter")
        assert page.eval_on_selector(".find", "(box) => box.validationMessage") == said
    assert asked(page)["head"] == "1.2"
    page.click('.map[data-head="1.2"]')
    assert "head" not in asked(page)
    page.focus(".find")
    assert pressed(page, "Enter")["head"] == "1.2"  # once more
    page.fill(".find", "1.1")
    assert pressed(page, "Escape")["head"] == "1.2"
    assert page.input_value(".find") == ""
    assert page.evaluate("() => document.activeElement === document.body")
    page.fill(".find", "zz")
    page.keyboard.press("Tab")
    assert not page.evaluate("() => document.activeElement.matches('.find')")
    assert pressed(page, "Home")["step"] == "0"
    at(page, "/run/gallery-ngram")
    for typed, said in (("abcx", "Got “x”"), ("ab", "Got 2 letters"), ("", "Got 0 letters")):
        page.fill(".typed", typed)
        ready(page)
        assert said in page.inner_text(".refused")
        assert page.locator(".letter").count() - 1 == 36  # another sequence is shown
    for letter in "abc ab":
        pressed(page, letter)
    assert page.locator(".letter").count() - 1 == 5
    assert not page.locator(".refused").count()
