"""The bars show losses of the step and switches that are looked at, or say of which else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.store import Store
from hopscope.web import carried
from hopscope.web.bundle import single
from hopscope.web.trained import Trained
from hopscope.web.views import Views
from tests.browser.lookers import bars, measured, opened, pressed

STEPS = [400, 500, 2500]
PLAYED = """() => {
  const seen = (globalThis.seen = []);
  const look = () => {
    const hint = document.querySelector(".losses .hint").textContent;
    const old = document.querySelector(".loss-bars").classList.contains("old");
    if (document.querySelector(".play").textContent !== "▶") seen.push([hint, old]);
    if (!globalThis.done) requestAnimationFrame(look);
  };
  look();
}"""
"""Note what the hint says, and whether the bars are dimmed, as long as the training is played."""


@pytest.mark.slow
def test_losses_of_another_step_are_said_to_be_so_while_it_plays(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=1.3")
    measured(page)
    page.evaluate(PLAYED)
    page.keyboard.press("Space")
    page.wait_for_function(
        "() => Number(document.querySelector('.slider').getAttribute('aria-valuenow')) >= 5"
    )
    page.keyboard.press("Space")
    measured(page)
    seen = page.evaluate("() => { globalThis.done = true; return globalThis.seen.slice(5); }")
    assert len(seen) > 5
    told = "being measured; shown: "
    assert [old for _, old in seen] == [hint.startswith(told) for hint, _ in seen]
    assert f"{told}step 2,500, 1.3=uniform, 1024 examples" in {
        hint.removesuffix(" …") for hint, _ in seen
    }
    assert not page.locator(".loss-bars.old").count()


def test_what_is_written_down_is_of_what_is_looked_at(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=1.3")
    assert page.is_hidden(".losses .line.python")  # nobody's one line gives these
    page.click(".losses .menu summary")
    page.click(".losses .menu button:text('Table')")
    first = page.locator(".losses .behind td").first
    before = first.inner_text()
    page.keyboard.press("Escape")  # the table takes keys as long as it has the keyboard
    page.keyboard.press("Home")
    page.locator(".losses .behind td").first.wait_for(state="detached")
    assert page.locator(".loss-bars.old").count()
    found = measured(page)[0]
    assert float(first.inner_text()) == found != float(before)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A saved page with three checkpoints, and the weights of the last one."""
    folder = tmp_path_factory.mktemp("saved")
    views = Views(Store(folder / "runs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trained, "steps", property(lambda _: STEPS))
        description = {**views.run("gallery-demo"), "checkpoints": STEPS}
        patch.setattr(Views, "run", lambda *_: description)
        patch.setattr(carried, "KNOWN_EXAMPLES", 2)
        data = carried.carried(views, "gallery-demo", room=0)
        patch.setattr("hopscope.web.bundle.carried", lambda *_: data)
        yield single(views, "gallery-demo", Path(folder / "page.html")).as_uri()


@pytest.mark.slow
def test_a_saved_page_shows_no_losses_that_it_does_not_know(page: Any, saved: str) -> None:
    page.goto(f"{saved}#/run/gallery-demo?off=1.3;2.0")
    assert len(measured(page)) == 2
    pressed(page, "ArrowLeft")
    assert bars(page) == []
    assert "Not measured: at step 500 this page carries no weights" in page.inner_text(".bars")
    pressed(page, "End")
    assert len(measured(page)) == 2
