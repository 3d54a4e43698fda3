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
    assert answer.status == 200
    assert len(views.asked) == 1


def test_a_body_comes_within_seconds() -> None:
    explorer = made(limits=Limits(sending=0.05))
    status, body = asyncio.run(sent(explorer.app, KEEP, [b"{"], ends=False))
    explorer.end()
    assert (status, b"expected a request within 0.05 s" in body) == (408, True)


def test_who_leaves_before_the_end_is_not_answered() -> None:
    async def leave() -> list[Any]:
        heard: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            heard.append(message)

        await explorer.app(KEEP.scope(), receive, send)
        return heard

    explorer = made()
    assert asyncio.run(leave()) == []
    explorer.end()


class Mistaken(StandIn):
    def run(self, id_: str, seed: int | None = None) -> dict[str, Any]:
        raise ZeroDivisionError(f"in /home/somebody/secret with {TOKEN}")

    def views(self, id_: str) -> dict[str, Any]:
        raise RunReadOnly("/home/somebody/runs/x cannot be written to, nor /srv/other/place")


def test_of_a_mistake_the_client_is_told_a_number_and_the_terminal_all() -> None:
    notes: list[str] = []
    explorer = made(Mistaken(), notes)
    first, second = ask_all(explorer.app, [Ask(path=f"/api/runs/{RUN}".encode())] * 2)
    explorer.end()
    assert first.status == second.status == 500
    assert first.json()["error"] == "a mistake of hopscope: see error 1 in its terminal"
    assert second.json()["error"] == "a mistake of hopscope: see error 2 in its terminal"
    assert notes[0] == "error 1 of this server, a mistake of hopscope:"
    assert "ZeroDivisionError" in "\n".join(notes)


def test_an_error_names_no_folder() -> None:
    explorer = made(Mistaken())
    (answer,) = ask_all(explorer.app, [Ask(path=f"/api/runs/{RUN}/views".encode())])
    explorer.end()
    assert answer.status == 403
    assert answer.json()["error"] == "runs/x cannot be written to, nor place"


def test_a_websocket_is_closed_before_it_opens() -> None:
    async def connect() -> list[Any]:
        heard: list[Any] = []

        async def send(message: Any) -> None:
            heard.append(message)

        await explorer.app(Ask().scope() | {"type": "websocket"}, None, send)
        return heard

    explorer = made()
    assert asyncio.run(connect()) == [{"type": "websocket.close", "code": 1008}]
    explorer.end()


@pytest.mark.parametrize("name", guard.HEADERS)
def test_a_header_that_is_missing_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    less = {key: value for key, value in guard.HEADERS.items() if key != name}
    monkeypatch.setattr(guard, "HEADERS", less)
    explorer = made()
    with pytest.raises(AssertionError):
        ask_all(explorer.app, [Ask()])
    explorer.end()


def test_the_page_may_load_nothing_from_elsewhere() -> None:
    assert "unsafe" not in guard.HEADERS["content-security-policy"]
    assert "http" not in guard.HEADERS["content-security-policy"]


def test_answers_of_the_api_are_not_kept_by_browsers() -> None:
    explorer = made()
    page, data = ask_all(explorer.app, [Ask(path=b"/"), Ask()])
    explorer.end()
    assert page.headers["cache-control"] == "no-cache"
    assert data.headers["cache-control"] == "no-store"


def test_who_leaves_during_a_computation_is_not_answered() -> None:
    async def leave() -> int:
        left = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, left.set)
        return (await answered(explorer.app, ABLATE, left)).status

    views = StandIn()
    views.slow = 30
    explorer = made(views)
    assert asyncio.run(leave()) == 0
    explorer.end()
    assert views.stopped == 1
