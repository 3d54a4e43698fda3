"""Requests to the app, without a network; every answer is held to the policy of headers."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from standin import StandIn

from hopscope.web.app import Explorer
from hopscope.web.page import page_files
from hopscope.web.policy import Policy

TOKEN = "k7Jx" * 11
HOST = b"127.0.0.1:8384"
JSON = (b"content-type", b"application/json")
WANTED = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer, written here once more."""


def wait() -> None:
    """Somebody waits for the answer."""


@dataclass(frozen=True)
class Ask:
    """A request; as it is, one that is answered."""

    method: str = "GET"
    path: bytes = b"/api/runs"
    query: bytes = b""
    host: tuple[bytes, ...] = (HOST,)
    token: tuple[bytes, ...] = (f"Bearer {TOKEN}".encode(),)
    kind: tuple[bytes, ...] = (b"application/json",)
    """Content-Type, of those that have a body."""
    more: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b"{}"
    version: str = "1.1"

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        found = [*((b"host", each) for each in self.host)]
        found += [(b"authorization", each) for each in self.token]
        if self.method != "GET":
            found += [(b"content-type", each) for each in self.kind]
        return found + list(self.more)

    def but(self, **changed: Any) -> "Ask":
        return replace(self, **changed)

    def scope(self) -> dict[str, Any]:
        return {
            "type": "http",
            "http_version": self.version,
            "method": self.method,
            "scheme": "http",
            "path": unquote(self.path.decode("latin-1")),
            "raw_path": self.path,
            "root_path": "",
            "query_string": self.query,
            "headers": self.headers,
            "client": ("127.0.0.1", 40_000),
            "server": ("127.0.0.1", 8384),
        }


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def refused(self) -> bool:
        """4xx, one constant line, and nothing of a model."""
        if not 400 <= self.status < 500 or b"attention" in self.body:
            return False
        told = self.json()
        return set(told) == {"error", "status"} and told["status"] == self.status


def check_headers(headers: Mapping[str, str], path: str, status: int) -> None:
    """The policy of headers, which every answer keeps to."""
    assert {name: headers.get(name) for name in WANTED} == WANTED, path
    page = status == 200 and not path.startswith("/api")
    assert headers["cache-control"] == ("no-cache" if page else "no-store"), path
    assert "server" not in headers
    assert not [name for name in headers if name.startswith("access-control")]
    assert "set-cookie" not in headers


async def answered(app: Any, ask: Ask, sent: list[dict[str, Any]] | None = None) -> Answer:
    """What the app answers to a client that sends these messages (default: the whole request) and
    does not leave; status 0: nothing.
    """
    heard: list[dict[str, Any]] = []
    if sent is None:
        sent = [{"type": "http.request", "body": ask.body if ask.method != "GET" else b""}]

    async def receive() -> dict[str, Any]:
        if sent:
            return sent.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        heard.append(message)

    await app(ask.scope(), receive, send)
    if not heard:
        return Answer(0, {}, b"")
    start, *rest = heard
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert len(headers) == len(start["headers"])
    check_headers(headers, unquote(ask.path.decode("latin-1")), start["status"])
    assert all(message["type"] == "http.response.body" for message in rest)
    assert not rest[-1].get("more_body", False)
    return Answer(start["status"], headers, b"".join(each["body"] for each in rest))


def ask_all(app: Any, asks: list[Ask]) -> list[Answer]:
    """The answers, one after the other."""

    async def all_of_them() -> list[Answer]:
        return [await answered(app, ask) for ask in asks]

    return asyncio.run(all_of_them())


def made(views: Any = None, notes: list[str] | None = None, **changed: Any) -> Explorer:
    """An app over a stand-in; what is changed of its policy, and what else it takes."""
    of_policy = {name: changed.pop(name) for name in ("trusted", "guards") if name in changed}
    policy = Policy(TOKEN, public=frozenset(page_files()), **of_policy)
    note = (notes if notes is not None else []).append
    return Explorer(views or StandIn(), policy, note, **changed)


def asked(
    *asks: Ask, views: Any = None, notes: list[str] | None = None, **changed: Any
) -> list[Answer]:
    """What such an app answers, until its end."""
    explorer = made(views, notes, **changed)
    try:
        return ask_all(explorer, list(asks))
    finally:
        explorer.end()
