"""The bars show losses of the step and switches that are looked at, or say of which else."""

from typing import Any

from tests.browser.lookers import at, held, measured, opened, table_of, until


def test_what_is_written_down_is_of_what_is_looked_at(
    page: Any, explorer: str, forgiven: list[str]
) -> None:
    """A page that is come back to asks again: the browser may have kept it as it was, without what
    was on its way.
    """
    forgiven.append("ERR_FAILED")
    opened(page, explorer, "/run/gallery-demo?off=1.3")
    assert page.is_hidden(".losses .line.python")  # nobody's one line gives these
    first = table_of(page, "losses").locator("td").first
    before = first.inner_text()
    page.keyboard.press("Escape")  # the table takes keys as long as it has the keyboard
    page.keyboard.press("Home")
    first.wait_for(state="detached")
    assert page.locator(".loss-bars.old").count()
    told = "being measured; shown: step 2,500, 1.3=uniform, 1,024 fresh examples"
    assert page.inner_text(".losses .hint").startswith(told)
    found = measured(page)[0]
    assert not page.locator(".loss-bars.old").count()
    assert float(first.inner_text()) == found != float(before)
    at(page, "/run/gallery-demo")
    waits = held(page, "**/ablate")
    page.click('.chip[data-item="1.3"]')
    until(page, lambda: waits)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    waits[0].abort()
    page.unroute("**/ablate")
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    assert len(measured(page)) == 2
    assert not page.is_visible(".error")
