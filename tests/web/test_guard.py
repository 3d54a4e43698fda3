"""Limits on what is sent, and what becomes of mistakes; the same headers on every answer."""

import asyncio
from typing import Any

import pytest
from asking import TOKEN, Ask, answered, ask_all, check_headers, made
from standin import RUN, StandIn

from hopscope.errors import RunReadOnly
from hopscope.web import guard
from hopscope.web.guard import Limits

KEEP = Ask("PUT", f"/api/runs/{RUN}/views/mine".encode())
ABLATE = Ask("POST", f"/api/runs/{RUN}/ablate".encode())
LONG = b'{"a": "' + b"x" * 256 * 1024 + b'"}'


async def sent(app: Any, ask: Ask, chunks: list[bytes], *, ends: bool = True) -> list[Any]:
    """What is answered to a body in several chunks, of which the last may not be the end."""
    heard: list[dict[str, Any]] = []
    left = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks) or not ends}
        for number, chunk in enumerate(chunks, 1)
    ]

    async def receive() -> dict[str, Any]:
        if left:
            return left.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        heard.append(message)

    await app(ask.scope(), receive, send)
    headers = {name.decode(): value.decode() for name, value in heard[0]["headers"]}
    check_headers(headers, ask.path.decode(), heard[0]["status"])
    assert headers["connection"] == "close"  # what is still sent is not waited for
    return [message.get("status") or message["body"] for message in heard]


def test_a_body_is_short_however_its_length_is_told() -> None:
    views = StandIn()
    explorer = made(views)
    told = KEEP.but(more=((b"content-length", b"%d" % len(LONG)),), body=LONG)
    lied = KEEP.but(more=((b"content-length", b"2"),), body=LONG)
    answers = ask_all(explorer.app, [told, lied, told.but(more=((b"content-length", b"9" * 99),))])
    assert [answer.status for answer in answers] == [413] * 3
    chunks = [b'{"a": "', *[b"x" * 60_000] * 10]
    assert asyncio.run(sent(explorer.app, KEEP, chunks, ends=False))[0] == 413
    explorer.end()
    assert views.asked == []


def test_without_that_limit_it_would_be_kept() -> None:
    views = StandIn()
    explorer = made(views, limits=Limits(body_bytes=2**30))
    (answer,) = ask_all(explorer.app, [KEEP.but(body=LONG)])
    explorer.end()
    assert (answer.status, len(views.asked)) == (200, 1)


def test_a_body_comes_within_seconds() -> None:
    explorer = made(limits=Limits(sending=0.05))
    status, body = asyncio.run(sent(explorer.app, KEEP, [b"{"], ends=False))
    explorer.end()
    assert (status, b"expected a request within 0.05 s" in body) == (408, True)


def test_who_leaves_is_not_answered() -> None:
    """Before all was sent, or during a computation, which ends; a websocket does not even open."""
    views = StandIn()
    views.slow = 30
    explorer = made(views)
    heard: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        heard.append(message)

    async def leave() -> int:
        await explorer.app(KEEP.scope(), receive, send)
        assert heard == []
        left = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, left.set)
        status = (await answered(explorer.app, ABLATE, left)).status
        await explorer.app(Ask().scope() | {"type": "websocket"}, None, send)
        return status

    assert asyncio.run(leave()) == 0
    explorer.end()
    assert views.stopped == 1
    assert heard == [{"type": "websocket.close", "code": 1008}]


class Mistaken(StandIn):
    def run(self, id_: str, seed: int | None = None) -> dict[str, Any]:
        raise ZeroDivisionError(f"in /home/somebody/secret with {TOKEN}")

    def views(self, id_: str) -> dict[str, Any]:
        raise RunReadOnly("/home/somebody/runs/x cannot be written to, nor /srv/other/place")


def test_of_a_mistake_the_client_is_told_a_number_and_the_terminal_all() -> None:
    notes: list[str] = []
    explorer = made(Mistaken(), notes)
    run = Ask(path=f"/api/runs/{RUN}".encode())
    asks = [run, run, run.but(path=run.path + b"/views")]
    first, second, known = ask_all(explorer.app, asks)
    explorer.end()
    assert first.status == second.status == 500
    assert first.json()["error"] == "a mistake of hopscope: see error 1 in its terminal"
    assert second.json()["error"] == "a mistake of hopscope: see error 2 in its terminal"
    assert notes[0] == "error 1 of this server, a mistake of hopscope:"
    assert "ZeroDivisionError" in "\n".join(notes)
    told = "runs/x cannot be written to, nor place"  # without the folders
    assert (known.status, known.json()["error"]) == (403, told)


def test_a_header_that_is_missing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """`asking.check_headers` holds every answer to them."""
    every = dict(guard.HEADERS)
    for name in every:
        monkeypatch.setattr(guard, "HEADERS", {key: every[key] for key in every if key != name})
        explorer = made()
        with pytest.raises(AssertionError):
            ask_all(explorer.app, [Ask()])
        explorer.end()
