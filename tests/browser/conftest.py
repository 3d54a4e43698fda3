"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright.

`page` is a page on which nothing has been opened, the same for all tests of a module; `site` is the
address of a plain server of `hopscope/web/static` on this machine, under the policy that the page
is made for. When the test is over, a request to anywhere but this machine fails it, and so does an
error on the console that is not `forgiven`.

Modules of the page are tested in this browser, too: `blank.evaluate` can import them. Tests of the
page itself read what people see, and wait by `lookers.ready`.
"""

import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from answering import Quiet, running

import hopscope
from hopscope.web.app import HEADERS

FOLDER = Path(__file__).parent
STATIC = Path(hopscope.__file__).parent / "web" / "static"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
HERE = ("127.0.0.1", "localhost", "[::1]", "")
"""Hosts of this machine; a file and a blob have none."""
VIEWPORT = {"width": 1280, "height": 720}
USUAL = dict.fromkeys(("media", "color_scheme", "reduced_motion", "forced_colors"), "null")
BLANK = b"<!doctype html><html lang='en'><title>blank</title><body></body></html>"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser on a busy machine may be late where nothing is wrong: each test here has a second
    try, which the summary counts as a rerun.
    """
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker(pytest.mark.flaky(reruns=1))


def absent(what: str) -> None:
    """Skip a test that needs this; with every check (`HOPSCOPE_ALL=1`), fail it."""
    (pytest.fail if os.environ.get("HOPSCOPE_ALL") == "1" else pytest.skip)(what)


# Of the folder alone: while it lives, Playwright's event loop counts as running in this thread,
# and tests of other folders may want one of their own.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """One browser for all tests of this folder."""
    path = shutil.which("chromium")
    if path is None:
        absent("no Chromium: apt-get install chromium")
    if importlib.util.find_spec("playwright") is None:
        absent("no Playwright: pip install 'hopscope[dev]'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def context(chromium: Any) -> Iterator[Any]:
    """What the pages of a module share: nothing but what the page keeps in the browser."""
    context = chromium.new_context()
    context.set_default_timeout(60_000)  # milliseconds: machines may be busy
    yield context
    context.close()


@pytest.fixture
def requests() -> list[str]:
    """The address of everything that `page` has asked for."""
    return []


@pytest.fixture
def complaints() -> list[str]:
    """Errors and warnings of the page."""
    return []


@pytest.fixture
def forgiven() -> list[str]:
    """Patterns of those that a test expects, whenever they come; any other fails it."""
    return []


@pytest.fixture(scope="module")
def tab(context: Any) -> Iterator[Any]:
    """The page of all tests of a module: a new one takes the browser as long as to load the
    explorer.
    """
    tab = context.new_page()
    yield tab
    tab.close()


@pytest.fixture
def page(
    tab: Any, requests: list[str], complaints: list[str], forgiven: list[str]
) -> Iterator[Any]:
    """The page, as if it were new; but scripts that are added to it stay: see `fresh`."""
    with watched(tab, requests, complaints, forgiven):
        yield tab
        tab.context.set_offline(False)
        tab.unroute_all()
        tab.goto("about:blank")
        tab.emulate_media(**USUAL)
        tab.set_viewport_size(VIEWPORT)
        tab.mouse.move(0, 0)


@pytest.fixture
def fresh(
    context: Any, requests: list[str], complaints: list[str], forgiven: list[str]
) -> Iterator[Any]:
    """A page that is used once."""
    page = context.new_page()
    with watched(page, requests, complaints, forgiven):
        yield page
        page.close()


@contextmanager
def watched(
    page: Any, requests: list[str], complaints: list[str], forgiven: list[str]
) -> Iterator[None]:
    """Refuse, at the end of the block, what the page asked elsewhere, and its complaints."""
    noted: dict[str, Callable[[Any], None]] = {
        "request": lambda request: requests.append(request.url),
        "pageerror": lambda error: complaints.append(str(error)),
        "console": lambda said: _note(said, complaints),
    }
    for event, note in noted.items():
        page.on(event, note)
    yield
    for event, note in noted.items():
        page.remove_listener(event, note)
    assert [url for url in requests if (urlsplit(url).hostname or "") not in HERE] == []
    assert [each for each in complaints if not any(re.search(its, each) for its in forgiven)] == []


def _note(said: Any, complaints: list[str]) -> None:
    # A page without an icon is asked for one by the browser alone.
    if said.type in ("error", "warning") and not said.location["url"].endswith("favicon.ico"):
        complaints.append(said.text)


class Plain(Quiet, SimpleHTTPRequestHandler):
    """Files of a folder, an empty page at /blank, and one at /saved that may use WebAssembly."""

    def do_GET(self) -> None:
        if self.path not in ("/blank", "/saved"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(BLANK)))
        self.end_headers()
        self.wfile.write(BLANK)
        return None

    def end_headers(self) -> None:
        policy, more = HEADERS["content-security-policy"], "script-src 'wasm-unsafe-eval'"
        policy = policy.replace("script-src", more) if self.path == "/saved" else policy
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


@pytest.fixture(scope="package")
def site() -> Iterator[str]:
    """The address of a server of the page's files."""
    with running(partial(Plain, directory=STATIC)) as (_, address):
        yield address


@pytest.fixture
def blank(page: Any, site: str) -> Any:
    """The page, open and empty, from which modules of the page can be imported."""
    page.goto(f"{site}/blank")
    return page


@pytest.fixture(scope="package")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server of an empty store, with what comes with hopscope."""
    from tests.browser.lookers import served

    with served(tmp_path_factory.mktemp("store")) as address:
        yield address


@pytest.fixture
def demo(page: Any, explorer: str) -> Any:
    """The page, open at the demo."""
    from tests.browser.lookers import opened

    opened(page, explorer, "/run/gallery-demo")
    return page


@pytest.fixture(scope="package")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a server of a short fleet, and the folder of its store."""
    from short import FLEET

    from hopscope.runs import train
    from hopscope.store import Store
    from tests.browser.lookers import served

    root = tmp_path_factory.mktemp("fleet") / "runs"
    train(FLEET, Store(root))
    with served(root) as address:
        yield address, root
