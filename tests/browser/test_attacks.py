"""What other sites, and other names for this machine, can make a browser do: nothing.

Two attackers: a site of another name (which a resolver leads to this machine), and a server at
another port of this machine, whose cookies and site the browser shares with ours.
"""

import shutil
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from answering import running
from asking import TOKEN
from attacks import ROUTED, good
from served import Served, served
from standin import RUN, SECRET

from hopscope.web.policy import GUARDS
from tests.browser.conftest import FLAGS, STATIC, Plain
from tests.browser.lookers import until

EVIL = "evil.test"


class _Evil(Plain):
    """A site that allows itself everything."""

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "Content-Security-Policy":
            super().send_header(keyword, value)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def evil() -> Iterator[int]:
    """The port of the attacker's own server."""
    with running(partial(_Evil, directory=STATIC)) as (site, _):
        yield site.server_port


@pytest.fixture(scope="module")
def misled(chromium: Any) -> Iterator[Any]:
    """A browser whose resolver leads the attacker's name to this machine."""
    browser = chromium.browser_type.launch(
        executable_path=shutil.which("chromium"),
        args=[*FLAGS, f"--host-resolver-rules=MAP {EVIL} 127.0.0.1"],
    )
    yield browser
    browser.close()


@pytest.fixture
def visit(misled: Any) -> Iterator[Any]:
    """A page of its own."""
    context = misled.new_context()
    yield context.new_page()
    context.close()


READ = """
document.body.replaceChildren();
const read = (promise) => promise.then((answer) => answer.text()).catch((error) => `${error}`);
const loaded = (kind, name) => new Promise((done) => {
  const element = document.createElement(kind);
  element[name] = target;
  element.onload = () => done("loaded");
  element.onerror = () => done("failed");
  document.body.append(element);
  setTimeout(() => done("nothing came"), 1000);
});
const form = (type, body) => new Promise((done) => {
  const frame = document.createElement("iframe"), form = document.createElement("form");
  frame.name = "into";
  Object.assign(form, { action: asking, method: "POST", enctype: type, target: "into" });
  const field = document.createElement("input");
  [field.name, field.value] = body;
  form.append(field);
  document.body.append(frame, form);
  frame.onload = () => done(inside(frame));
  form.submit();
  setTimeout(() => done("nothing came"), 1000);
});
const inside = (frame) => {
  try {
    return frame.contentDocument?.body.textContent ?? "closed";
  } catch (error) {
    return `${error}`;
  }
};
const framed = (kind, name) => new Promise((done) => {
  const frame = document.createElement(kind);
  frame[name] = target;
  frame.onload = frame.onerror = () => done(inside(frame));
  document.body.append(frame);
  setTimeout(() => done("nothing came"), 1000);
});
"""
JSON = "{ 'Content-Type': 'application/json' }"
ATTACKS = {
    "fetch": "read(fetch(target, { credentials: 'include' }))",
    "fetch of another mode": "read(fetch(target, { mode: 'no-cors' }))",
    "post of another mode": "read(fetch(asking, { method: 'POST', mode: 'no-cors', body: '{}' }))",
    "post of JSON": f"read(fetch(asking, {{ method: 'POST', headers: {JSON}, body: '{{}}' }}))",
    "with the token": f"read(fetch(target, {{ headers: {{ Authorization: 'Bearer {TOKEN}' }} }}))",
    "form": "form('application/x-www-form-urlencoded', ['{\"examples\":', '8}'])",
    "form of text": "form('text/plain', ['{\"examples\": 8, \"x\":\"', '\"}'])",
    "picture": "loaded('img', 'src')",
    "script": "loaded('script', 'src')",
    "module": "import(page + 'page.js').then(() => 'loaded').catch((error) => `${error}`)",
    "beacon": "Promise.resolve(`${navigator.sendBeacon(asking, '{}')}`)",
    "frame": "framed('iframe', 'src')",
    "object": "framed('object', 'data')",
    "socket": (
        "new Promise((done) => { const s = new WebSocket(target.replace('http', 'ws')); "
        "s.onopen = () => done('open'); s.onerror = () => done('failed'); })"
    ),
}


@pytest.mark.parametrize("host", [EVIL, "127.0.0.1"])
def test_another_site_has_nothing_asked_and_reads_nothing(
    server: Served, evil: int, visit: Any, host: str
) -> None:
    server.views.asked.clear()
    page = f"http://127.0.0.1:{server.port}/"
    visit.goto(f"http://{host}:{evil}/blank")
    constants = (
        f"const page = '{page}', target = page + 'api/runs', "
        f"asking = page + 'api/runs/{RUN}/ablate';"
    )
    for name, attack in ATTACKS.items():
        read = visit.evaluate(f"async () => {{ {constants} {READ} return await {attack}; }}")
        assert SECRET not in read, name
        assert read not in ("loaded", "open"), name
        visit.wait_for_timeout(50)  # what was sent on the way
        assert server.views.asked == [], name
    # Nor does a page of theirs frame ours.
    visit.evaluate(f"async () => {{ const target = '{page}'; {READ} await {ATTACKS['frame']}; }}")
    (framed,) = [frame for frame in visit.frames if frame != visit.main_frame]
    assert not framed.url.startswith(page)


def test_a_name_that_was_bent_to_this_machine_is_refused(server: Served, visit: Any) -> None:
    """DNS rebinding: for the browser, the page and the server are of one origin."""
    routes = [ask.path.decode() for ask in good(ROUTED) if ask.method == "GET"]
    for path in (*routes, "/page.js", "/nothing"):
        answer = visit.goto(f"http://{EVIL}:{server.port}{path}")
        assert answer.status == 403, path
        assert SECRET not in answer.text()
    script = f"fetch('/api/runs', {{ headers: {{ Authorization: 'Bearer {TOKEN}' }} }})"
    assert visit.evaluate(f"async () => (await {script}).status") == 403


def test_a_link_from_elsewhere_opens_an_empty_page(server: Served, evil: int, visit: Any) -> None:
    """It is of nobody's window, and has no token: there is no data in it."""
    server.views.asked.clear()
    visit.goto(f"http://{EVIL}:{evil}/blank")
    page = f"http://127.0.0.1:{server.port}/"
    with visit.context.expect_page() as opened:
        visit.evaluate("(page) => { window.other = window.open(page); }", page)
    opened.value.wait_for_load_state()
    assert opened.value.evaluate("window.opener") is None
    assert visit.evaluate("window.other.closed")  # severed: it sees nothing of it
    assert server.views.asked == []


def test_without_guards_the_attacks_reach_the_server(visit: Any, evil: int) -> None:
    less = {each: GUARDS[each] for each in GUARDS if each not in ("site", "origin", "token")}
    with served(guards=less) as open_to_all:
        visit.goto(f"http://{EVIL}:{evil}/blank")
        target = f"const target = 'http://127.0.0.1:{open_to_all.port}/api/runs';"
        for name in ("fetch of another mode", "picture", "script", "frame"):
            open_to_all.views.asked.clear()
            visit.evaluate(f"async () => {{ {target} {READ} return await {ATTACKS[name]}; }}")
            until(visit, lambda: open_to_all.views.asked)
