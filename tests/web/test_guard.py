"""Limits on what is sent, and what becomes of mistakes; the same headers on every answer."""

import asyncio
from typing import Any

from asking import TOKEN, Ask, ask_all, asked, check_headers, made
from standin import RUN, StandIn

from hopscope.errors import RunReadOnly
from hopscope.web.guard import Limits

KEEP = Ask("PUT", f"/api/runs/{RUN}/views/mine".encode())
LONG = b'{"a": "' + b"x" * 256 * 1024 + b'"}'


async def sent(app: Any, ask: Ask, chunks: list[bytes]) -> list[Any]:
    """What is answered to a body in several chunks, of which the last is not the end."""
    heard: list[dict[str, Any]] = []
    left = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]

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


def test_a_body_is_short_however_its_length_is_told_and_comes_within_seconds() -> None:
    views = StandIn()
    explorer = made(views)
    told = KEEP.but(more=((b"content-length", b"%d" % len(LONG)),), body=LONG)
    lied = KEEP.but(more=((b"content-length", b"2"),), body=LONG)
    answers = ask_all(explorer.app, [told, lied, told.but(more=((b"content-length", b"9" * 99),))])
    assert [answer.status for answer in answers] == [413] * 3
    chunks = [b'{"a": "', *[b"x" * 60_000] * 10]
    assert asyncio.run(sent(explorer.app, KEEP, chunks))[0] == 413
    explorer.end()
    assert views.asked == []
    explorer = made(limits=Limits(sending=0.05))
    status, body = asyncio.run(sent(explorer.app, KEEP, [b"{"]))
    explorer.end()
    assert (status, b"expected a request within 0.05 s" in body) == (408, True)


def test_who_leaves_before_all_was_sent_is_not_answered() -> None:
    """And a websocket does not even open."""
    explorer = made()
    heard: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        heard.append(message)

    asyncio.run(explorer.app(KEEP.scope(), receive, send))
    assert heard == []
    asyncio.run(explorer.app(Ask().scope() | {"type": "websocket"}, receive, send))
    assert heard == [{"type": "websocket.close", "code": 1008}]
    explorer.end()


class Mistaken(StandIn):
    def run(self, id_: str, seed: int | None = None) -> dict[str, Any]:
        raise ZeroDivisionError(f"in /home/somebody/secret with {TOKEN}")

    def views(self, id_: str) -> dict[str, Any]:
        raise RunReadOnly("/home/somebody/runs/x cannot be written to, nor /srv/other/place")


def test_of_a_mistake_the_client_is_told_a_number_and_the_terminal_all() -> None:
    notes: list[str] = []
    run = Ask(path=f"/api/runs/{RUN}".encode())
    asks = [run, run, run.but(path=run.path + b"/views")]
    first, second, known = asked(*asks, views=Mistaken(), notes=notes)
    assert first.status == second.status == 500
    assert first.json()["error"] == "a mistake of hopscope: see error 1 in its terminal"
    assert second.json()["error"] == "a mistake of hopscope: see error 2 in its terminal"
    assert notes[0] == "error 1 of this server, a mistake of hopscope:"
    assert "ZeroDivisionError" in "\n".join(notes)
    told = "runs/x cannot be written to, nor place"  # without the folders
    assert (known.status, known.json()["error"]) == (403, told)
