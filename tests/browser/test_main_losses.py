"""The bars show losses of the step and switches that are looked at, or say of which else."""

from pathlib import Path
from typing import Any

from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.runs import train
from hopscope.store import Store
from tests.browser.lookers import at, held, measured, opened, served, table_of, until


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


def test_the_page_says_of_which_positions_losses_are(page: Any, tmp_path: Path) -> None:
    """Training asks a k-hop model at every position, a circuit is examined at the last one: the
    losses of the same model differ.
    """
    training = Training(steps=2, batch=4, examples=8, validation_examples=4, precision="float32")
    recipe = Experiment(task=KHop(length=10), model=Model(d_model=16), training=training)
    train(recipe, Store(tmp_path))
    with served(tmp_path) as address:
        run = f"/run/{recipe.run_name().rpartition('-')[2]}"
        opened(page, address, run)
        assert page.inner_text(".losses .hint") == "validation, all positions, step 2"
        at(page, f"{run}?off=0.0")
        assert page.inner_text(".losses .hint") == "1,024 fresh examples, last position alone"
