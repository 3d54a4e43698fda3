"""The page's questions to a server: token, lines as they come, errors in one line, giving up."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np
import pytest
from answering import Quiet, running
from safetensors.numpy import save

from tests.browser.conftest import BLANK, STATIC

ASK = """async ([method, ...rest]) => {
  const { openSource } = await import("/source.js");
  const source = await openSource();
  try {
    const found = await source[method](...rest);
    if (found?.tensors) return { about: found.about, names: [...found.tensors.keys()] };
    if (found?.[Symbol.asyncIterator] === undefined) return found ?? null;
    const lines = [];
    for await (const line of found) lines.push(line);
    return lines;
  } catch (error) {
    return `${error.status}: ${error.message}`;
  }
}"""


class Asked(Quiet, BaseHTTPRequestHandler):
    """Notes what it was asked and answers by the path."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size).decode()
        if self.path.startswith("/api/"):
            key = self.headers.get("Authorization")
            self.server.asked.append([self.command, self.path, key, body])  # type: ignore[attr-defined]
        status, kind, data = self.found()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) + BROKEN * ("/broken" in self.path)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = "/broken" in self.path

    do_GET = do_POST = do_PUT = answer  # noqa: N815

    def found(self) -> tuple[int, str, bytes]:
        if self.path == "/":
            return 200, "text/html", BLANK
        if self.path.endswith(".js"):
            return 200, "text/javascript", (STATIC / self.path[1:]).read_bytes()
        if "/arrays/" in self.path or self.path.endswith("/example"):
            return 200, "application/octet-stream", save({"x": np.ones(2)}, {"json": '{"a": 1}'})
        return SAID.get(self.path, (200, "application/json", b'{"fine": true}'))


BROKEN = 99
"""Bytes that are promised, and never come."""
LINES = "application/x-ndjson"
SAID = {
    "/api/runs/a/over-time": (200, LINES, '{"n": 1}\n\n{"n": "über"}\n{"n": 3}'.encode()),
    "/api/runs/b/over-time": (200, LINES, b'{"n": 1}\n{"error": "no such head", "status": 422}\n'),
    "/api/runs/c/over-time": (200, LINES, b'{"n": 1}\n{"n": '),
    "/api/token": (200, "application/json", b'{"token": "s3cret"}'),
    "/api/runs/gone": (404, "application/json", b'{"error": "no such run", "status": 404}'),
    "/api/runs/dumb": (502, "text/html", b"<h1>bad gateway</h1>"),
}


@pytest.fixture
def server() -> Iterator[Any]:
    with running(Asked) as (server, _):
        server.asked = []
        server.handle_error = lambda *_: None  # who gives up hangs up
        yield server


def address(server: Any) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_a_word_becomes_a_token_that_outlives_a_reload(page: Any, server: Any) -> None:
    """Neither stays in the address."""
    page.goto(f"{address(server)}/#once=w0rd&/run/gallery-demo?off=1.0")
    assert page.evaluate(ASK, ["runs", "c 1"]) == {"fine": True}
    assert page.url == f"{address(server)}/#/run/gallery-demo?off=1.0"
    page.reload()
    page.evaluate(ASK, ["keep", "a b", "my view", {"step": 3}])
    assert server.asked == [
        ["POST", "/api/token", None, '{"word":"w0rd"}'],
        ["GET", "/api/runs?since=c%201", "Bearer s3cret", ""],
        ["PUT", "/api/runs/a%20b/views/my%20view", "Bearer s3cret", '{"step":3}'],
    ]


def test_where_nothing_may_be_kept_the_token_is_in_memory(fresh: Any, server: Any) -> None:
    """As in Firefox, with cookies and site data blocked."""
    fresh.add_init_script(
        """for (const name of ["sessionStorage", "localStorage"])
          Object.defineProperty(window, name, { get() { throw new Error("it is insecure"); } });
        """
    )
    fresh.goto(f"{address(server)}/#once=w0rd&/")
    assert fresh.evaluate(ASK, ["runs"]) == FINE
    assert server.asked[-1] == ["GET", "/api/runs", "Bearer s3cret", ""]


FINE = {"fine": True}
ARRAYS = {"about": {"a": 1}, "names": ["x"]}
QUESTIONS = (
    (["run", "../x"], ["GET", "/api/runs/..%2Fx", ""], FINE),
    (["run", "a", {"seed": 3}], ["GET", "/api/runs/a?seed=3", ""], FINE),
    (["views", "a"], ["GET", "/api/runs/a/views", ""], FINE),
    (["arrays", "a", "maps", 3], ["GET", "/api/runs/a/arrays/maps?seed=3", ""], ARRAYS),
    (["example", "a", {"index": 1}], ["POST", "/api/runs/a/example", '{"index":1}'], ARRAYS),
    (["ablate", "a", {}], ["POST", "/api/runs/a/ablate", "{}"], FINE),
    (["costs", "a", {}], ["POST", "/api/runs/a/costs", "{}"], [FINE]),
    (
        ["overTime", "a", {}],
        ["POST", "/api/runs/a/over-time", "{}"],
        [{"n": 1}, {"n": "über"}, {"n": 3}],
    ),
)


def test_every_question(page: Any, server: Any) -> None:
    page.goto(f"{address(server)}/#token=t")
    for asked, request, found in QUESTIONS:
        server.asked.clear()
        assert page.evaluate(ASK, asked) == found
        ((method, path, token, body),) = server.asked
        assert ([method, path, body], token) == (request, "Bearer t")


BROKE = "0: the answer broke off: is `hopscope view` still running?"
ERRORS = (
    (["run", "gone"], "404: no such run"),
    (["run", "dumb"], "502: the server answered 502 without a message"),
    (["overTime", "b", {}], "422: no such head"),
    (["overTime", "c", {}], "0: the answer broke off in the middle of a line: ask again"),
    (["overTime", "broken", {}], BROKE),
    (["run", "broken"], BROKE),
    (["arrays", "broken", "maps"], BROKE),
)


def test_an_error_is_one_line(page: Any, server: Any, forgiven: list[str]) -> None:
    """Of the server, of one that dies while it answers, and of one that is gone."""
    forgiven += ["Failed to load", "ERR_CONTENT_LENGTH", "ERR_INTERNET_DISCONNECTED"]
    page.goto(address(server))
    for asked, said in ERRORS:
        assert page.evaluate(ASK, asked) == said, asked
    page.context.set_offline(True)
    assert "0: the server does not answer" in page.evaluate(ASK, ["runs"])


def test_a_question_is_given_up(page: Any, server: Any) -> None:
    page.goto(address(server))
    told = page.evaluate(
        """async () => {
          const { openSource } = await import("/source.js");
          const giving = new AbortController();
          const asked = (await openSource()).ablate("a", {}, { signal: giving.signal });
          giving.abort();
          return asked.catch((error) => error.name);
        }"""
    )
    assert told == "AbortError"


def test_a_page_that_the_user_leaves_shows_no_error(
    page: Any, server: Any, forgiven: list[str]
) -> None:
    """Firefox reports the aborted requests as failures of the network. When the user comes back or
    stays, a server that is gone is reported again.
    """
    forgiven.append("ERR_INTERNET_DISCONNECTED")
    page.goto(address(server))
    assert page.evaluate(ASK, ["runs"]) == FINE
    page.context.set_offline(True)
    for goes in ("beforeunload", "pagehide"):
        page.evaluate("(goes) => dispatchEvent(new Event(goes))", goes)
        assert page.evaluate(ASK, ["runs"]) == "undefined: the page was left"
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
        assert "the server does not answer" in page.evaluate(ASK, ["runs"])
    page.evaluate("dispatchEvent(new Event('beforeunload'))")
    page.context.set_offline(False)
    assert page.evaluate(ASK, ["runs"]) == FINE
    page.context.set_offline(True)
    assert "the server does not answer" in page.evaluate(ASK, ["runs"])
