"""What the tests of the page share: a real server behind it, and small questions to the page."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from asking import TOKEN
from axe_playwright_python.sync_playwright import Axe
from served import served as serving

from hopscope.store import Store
from hopscope.web.token import Once
from hopscope.web.views import Views

SOON = 60_000
"""Milliseconds that anything may take on a busy machine."""


@contextmanager
def served(root: Path, once: Once | None = None) -> Iterator[str]:
    """The address of a real server of this store, to which the token has to be added."""
    with serving(Views(Store(root)), once=once) as running:
        yield f"http://127.0.0.1:{running.port}"
    assert running.notes == []


def opened(page: Any, site: str, state: str = "") -> None:
    """Open the page in a state, and wait until all that was asked for is there."""
    page.goto("about:blank")  # from where everything begins anew
    page.goto(f"{site}/#token={TOKEN}&{state or '/'}")
    ready(page)


READY = """([soon, explorer]) => {
  let frames = 0;
  const missing = () => globalThis.hopscope?.missing?.() ?? (explorer ? ["page"] : []);
  const told = () => new Error(`not ready after ${frames} frames, missing: ${missing()}`);
  const late = new Promise((_, fail) => setTimeout(() => fail(told()), soon));
  const drawn = async () => {
    do {
      for (let n = 0; n < 2; n++, frames++) await new Promise(requestAnimationFrame);
    } while (missing().length);
  };
  return Promise.race([late, drawn()]);
}"""
"""The limit does not wait for a frame: where none is drawn, `evaluate` itself would never end."""


def ready(page: Any, *, explorer: bool = True) -> None:
    """Wait until all that was asked for is drawn, and stands in the address. A page that need not
    be the explorer is ready once it is drawn.
    """
    page.evaluate(READY, [SOON, explorer])


def until(page: Any, true: Callable[[], Any]) -> None:
    """Wait until this is true."""
    end = time.monotonic() + SOON / 1000
    while not true():
        assert time.monotonic() < end, "it is not to be"
        page.wait_for_timeout(20)


def asked(page: Any) -> dict[str, str]:
    """What the address says, by name, once all of it is drawn."""
    ready(page)
    query = urlsplit(page.url).fragment.partition("?")[2]
    return {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}


def pressed(page: Any, *keys: str) -> dict[str, str]:
    """What the address says after these keys."""
    for key in keys:
        page.keyboard.press(key)
    return asked(page)


def learned(page: Any, id_: str = "gallery-demo") -> None:
    """Let the server tell that the run has changed, until the page has opened it once more."""
    row = {"id": id_, "name": id_, "date": "2026-01-01", "state": "complete"}
    told = iter([[row]])  # once; a route that takes itself away may let go of what it holds

    def tell(route: Any) -> None:
        rows = next(told, None)
        if rows is None:
            return route.fallback()
        cursor = parse_qs(urlsplit(route.request.url).query)["since"][0]
        return route.fulfill(json={"cursor": cursor, "rows": rows})

    page.route("**/api/runs?since=*", tell)
    with page.expect_response(f"**/api/runs/{id_}*"):
        pass
    ready(page)


def held(page: Any, pattern: str) -> list[Any]:
    """Requests of this form, of which none is answered yet."""
    found: list[Any] = []

    def hold(route: Any) -> None:
        found.append(route)

    page.route(pattern, hold)
    return found


def bars(page: Any) -> list[float]:
    """The losses that the bars show, hop by hop, with all their digits."""
    ready(page)
    texts = page.eval_on_selector_all(
        ".loss-bars .value", "(all) => all.map((each) => each.dataset.value)"
    )
    return [float(text) for text in texts]


def measured(page: Any) -> list[float]:
    """The bars, which are the losses of as many examples as are measured at most."""
    found = bars(page)
    assert page.inner_text(".losses .hint") == "1,024 fresh examples"
    return found


def at(page: Any, state: str) -> None:
    """Lead the page, which is open, to another state, and wait until all is there."""
    page.evaluate("(state) => { location.hash = state; }", state)
    ready(page)


def complaints_of_axe(page: Any, *rules: str) -> list[str]:
    """What is wrong for people who do not see the page, or do not use a mouse: by these rules, or
    by all.
    """
    found = Axe().run(page, options={"runOnly": rules} if rules else None).response
    assert len(found["passes"]) > (0 if rules else 15)  # it did look
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


def check_for_everybody(page: Any, *widths: int) -> None:
    """At these widths axe finds nothing, in light and (colours alone differ) in dark, and nothing
    is wider.
    """
    for width, scheme in itertools.product(widths, ("light", "dark")):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 900})
        ready(page, explorer=False)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints_of_axe(page, *(["color-contrast"] if scheme == "dark" else [])) == []


def table_of(page: Any, pane: str) -> Any:
    """The numbers of a pane, opened by its menu."""
    page.click(f"#pane-{pane} .menu summary")
    page.click(f"#pane-{pane} .menu button:text('Table')")
    return page.locator(f"#pane-{pane} .behind")
