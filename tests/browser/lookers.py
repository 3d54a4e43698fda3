"""What the tests of the page share: a real server behind it, and small questions to the page."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from axe_playwright_python.sync_playwright import Axe

from hopscope.store import Store
from hopscope.web.address import Address
from hopscope.web.listening import listening
from hopscope.web.policy import Policy
from hopscope.web.serving import Server, explorer, public
from hopscope.web.token import Once
from hopscope.web.views import Views

TOKEN = "t" * 43
SOON = 60_000
"""Milliseconds that anything may take on a busy machine."""


@contextmanager
def served(root: Path, once: Once | None = None) -> Iterator[str]:
    """The address of a real server of this store, to which the token has to be added."""
    notes: list[str] = []
    policy = Policy(token=TOKEN, public=public())
    made = explorer(Views(Store(root)), policy, notes.append, once=once)
    with listening(Address()) as (opened, address):
        server = Server(made)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([opened])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{address.port}"
        finally:
            server.should_exit = True
            thread.join()
            made.end()
    assert notes == []


def opened(page: Any, site: str, state: str = "") -> None:
    """Open the page in a state, and wait until all that was asked for is there."""
    page.goto(f"{site}/#token={TOKEN}&{state or '/'}")
    settled(page)


def settled(page: Any) -> None:
    """Wait until a run is drawn, and nothing more is asked."""
    page.wait_for_function(
        """() => { const { state, live } = globalThis.hopscope ?? {}, about = state?.about;
        if (!about || state.opening || live.busy) return false;
        if (!about.task) return about.kind !== "ngram" || Boolean(state.values);
        return state.maps && (state.example || !state.steps.length) && !state.asking; }""",
        timeout=SOON,
    )
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")


def state(page: Any, key: str) -> Any:
    """A value of the page's state."""
    return page.evaluate("(key) => globalThis.hopscope.state[key]", key)


def asked(page: Any) -> dict[str, str]:
    """What the address says, by name."""
    query = urlsplit(page.url).fragment.partition("?")[2]
    return {name: values[0] for name, values in parse_qs(query).items()}


def bars(page: Any) -> list[float]:
    """The losses that the bars show, hop by hop, with all their digits."""
    texts = page.eval_on_selector_all(
        ".loss-bars .value", "(all) => all.map((each) => each.dataset.value)"
    )
    return [float(text) for text in texts]


def measured(page: Any, examples: int = 1024) -> list[float]:
    """The bars, once they are the losses of so many examples."""
    page.wait_for_function(
        """(n) => { const { answer, asking, off } = hopscope.state;
        return answer?.examples === n && !asking && answer.changes.length === off.length
          && off.every((its, at) => answer.changes[at].endsWith(`=${its.as}`)); }""",
        arg=examples,
        timeout=SOON,
    )
    settled(page)
    return bars(page)


def complaints_of_axe(page: Any) -> list[str]:
    """What is wrong for people who do not see the page, or do not use a mouse."""
    found = Axe().run(page).response
    assert len(found["passes"]) > 15  # it did look
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]
