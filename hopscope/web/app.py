"""The explorer as one ASGI app: lets through what the policy allows, asks a store's views in a
thread, and answers. Whatever goes wrong ends here, as one line; every answer has the same headers.

Short questions are answered by one thread, single examples by another, clicks by a third, arrays
over all checkpoints by a fourth; none has more than one in hand, and nobody waits for what is
heavier than his own question. An answer is JSON, arrays are a file of safetensors, and what grows
comes line by line.
"""

import asyncio
import json
import re
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from hopscope.display import plain
from hopscope.errors import (
    HopscopeError,
    RunBusy,
    RunMissing,
    RunReadOnly,
    StoreError,
    StoreUnwritable,
)
from hopscope.web.page import page
from hopscope.web.policy import API, EXCHANGE, Asked, Policy, Refused
from hopscope.web.questions import (
    AblateQuestion,
    CostsQuestion,
    ExampleQuestion,
    Question,
    read_json,
)
from hopscope.web.token import Once
from hopscope.web.views import Views
from hopscope.web.worker import ClientLeft, Left, Stop, Worker

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
HEADERS = {
    "content-security-policy": (  # the page loads what was served with it, and nothing else
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer."""
JSON, LINES, ARRAYS = "application/json", "application/x-ndjson", "application/octet-stream"
STATUS: tuple[tuple[type[HopscopeError], int], ...] = (
    (RunMissing, 404),
    (RunReadOnly, 403),
    (RunBusy, 409),
    (StoreUnwritable, 507),
    (StoreError, 409),
    (HopscopeError, 422),
)
"""The first class that an error belongs to says its status."""
FOLDERS = re.compile(r"(?<![\w/<:.~-])/(?:[^\s/:'\"]+/)+")
"""The folders before a file, of a path from the root."""
WRITING = ("PUT", "DELETE")
"""Methods of routes that are not there where all is read-only."""
QUERY = {"since": r"[\w.-]{0,100}", "seed": r"\d{1,10}", "step": r"\d{1,10}"}
"""What may stand after the question mark."""


@dataclass(frozen=True)
class Limits:
    """How much a request may take, and how long."""

    body_bytes: int = 256 * 1024
    sending: float = 10.0
    """Seconds in which a request has to arrive whole."""
    waiting: int = 16
    """Requests that compute, or wait for their turn, in each thread."""
    computing: float = 30.0
    """Seconds in which an answer, or the next line of one, has to be there."""


class Request(NamedTuple):
    """A request as its route reads it."""

    parts: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The run that is asked about."""
        return self.parts["id"]

    def number(self, name: str) -> int | None:
        """A number of the query."""
        return int(self.query[name]) if name in self.query else None


Ask = Callable[[Stop], Any]
"""Computes an answer; None where another thread has to."""


@dataclass(frozen=True)
class Route:
    """What is asked at a path: `read` makes what is computed of a question, and says in which
    threads, one after the other.
    """

    method: str
    path: str
    read: Callable[[Request], list[tuple[Worker, Ask]]]
    query: tuple[str, ...] = ()
    streams: bool = False

    def parts(self, path: str) -> Mapping[str, str] | None:
        """The parts of this path, if it is one of this route: names, which are looked up."""
        found = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", self.path), path)
        return None if found is None else found.groupdict()


class Explorer:
    """The whole app, and the threads that work for it."""

    def __init__(
        self,
        views: Views,
        policy: Policy,
        note: Callable[[str], None],
        *,
        limits: Limits | None = None,
        read_only: bool = False,
        once: Once | None = None,
    ) -> None:
        self.views, self.policy, self.note = views, policy, note
        self.limits = limits or Limits()
        self.workers = [Worker(self.limits.waiting, self.limits.computing) for _ in range(4)]
        self.page, self._mistakes = page(), count(1)
        self.routes = [
            each for each in self._routes(once) if not (read_only and each.method in WRITING)
        ]

    def _routes(self, once: Once | None) -> Iterator[Route]:
        """What is asked, by which method, and in which thread."""
        views, (short, looking, clicks, stories) = self.views, self.workers
        run = f"{API}/runs/{{id}}"

        def arrays(q: Request) -> list[tuple[Worker, Ask]]:
            name, seed, step = q.parts["name"], q.number("seed"), q.number("step")
            if step is not None:
                return [(stories, lambda stop: views.arrays_at(q.id, name, seed, step, stop))]
            return [
                (short, lambda _: views.at_hand(q.id, name, seed)),
                (stories, lambda stop: views.arrays(q.id, name, seed, stop)),
            ]

        def posed(
            kind: type[Question], worker: Worker, ask: Callable[[str, Any, Stop], Any]
        ) -> Callable[[Request], list[tuple[Worker, Ask]]]:
            def read(q: Request) -> list[tuple[Worker, Ask]]:
                asked = kind.parse(q.body)
                return [(worker, lambda stop: ask(q.id, asked, stop))]

            return read

        def example(id_: str, asked: ExampleQuestion, _: Stop) -> bytes:
            return views.example(id_, asked)

        def keep(q: Request, view: dict[str, Any] | None) -> list[tuple[Worker, Ask]]:
            def kept(_: Stop) -> dict[str, str]:
                views.keep(q.id, q.parts["name"], view)
                return {"removed" if view is None else "kept": q.parts["name"]}

            return [(short, kept)]

        def exchange(q: Request) -> list[tuple[Worker, Ask]]:
            assert once is not None
            word = read_json(q.body).get("word")
            return [(short, lambda _: {"token": once.exchanged(word)})]

        yield Route(
            "GET", f"{API}/runs",
            lambda q: [(short, lambda _: views.runs(q.query.get("since", "")))], ("since",),
        )  # fmt: skip
        yield Route(
            "GET", run, lambda q: [(short, lambda _: views.run(q.id, q.number("seed")))], ("seed",)
        )
        yield Route("GET", f"{run}/arrays/{{name}}", arrays, ("seed", "step"))
        yield Route("POST", f"{run}/example", posed(ExampleQuestion, looking, example))
        yield Route("POST", f"{run}/ablate", posed(AblateQuestion, clicks, views.ablate))
        over_time = posed(AblateQuestion, clicks, views.over_time)
        yield Route("POST", f"{run}/over-time", over_time, streams=True)
        costs = posed(CostsQuestion, clicks, views.costs)
        yield Route("POST", f"{run}/costs", costs, streams=True)
        yield Route("GET", f"{run}/views", lambda q: [(short, lambda _: views.views(q.id))])
        yield Route("PUT", f"{run}/views/{{name}}", lambda q: keep(q, read_json(q.body)))
        yield Route("DELETE", f"{run}/views/{{name}}", lambda q: keep(q, None))
        if once is not None:
            yield Route("POST", EXCHANGE, exchange)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request."""
        reply = Reply(send)
        try:
            asked = Asked.of(scope)
            self.policy.check(asked)
            body = await self._body(receive)
            path = asked.raw_path.decode("ascii").replace("%20", " ")
            if asked.method == "GET" and path in self.page:
                kind, read = self.page[path]
                return await reply.whole(kind, read(), {"cache-control": "no-cache"})
            route, parts = self._route(asked.method, path)
            request = Request(parts, _query(scope["query_string"], route.query), body)
            async with leaving(receive) as left:
                await self._answer(route, request, reply, left)
        except ClientLeft:
            return None
        except asyncio.CancelledError:
            await reply.refuse(Refused(503, "the server ends: start `hopscope view` again"))
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is, it ends here)
            await reply.refuse(self.refused(error))

    def _route(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        found = [(each, parts) for each in self.routes if (parts := each.parts(path)) is not None]
        for route, parts in found:
            if route.method == method:
                return route, parts
        if found or path in self.page:
            raise Refused(405, "this is asked by another method")
        raise Refused(404, "there is nothing here")

    async def _answer(self, route: Route, asked: Request, reply: "Reply", left: Left) -> None:
        """What the first thread gives that can answer."""
        for worker, ask in route.read(asked):
            if route.streams:
                async with aclosing(worker.lines(ask, left)) as lines:
                    async for line in lines:
                        await reply.line(written(line))
                return await reply.end()
            found = await worker.answer(partial(_file, ask), left)
            if found is not None:
                return await reply.whole(*found)
        return None

    async def _body(self, receive: Receive) -> bytes:
        """All that is sent, if it is not too much and does not take too long."""
        most, data = self.limits.body_bytes, bytearray()
        too_long = Refused(413, f"expected a body of at most {most // 1024} kB")
        try:
            async with asyncio.timeout(self.limits.sending):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeft
                    data += message.get("body", b"")
                    if len(data) > most:
                        raise too_long
                    if not message.get("more_body", False):
                        return bytes(data)
        except TimeoutError:
            line = f"expected a request within {self.limits.sending:g} s"
            raise Refused(408, line) from None

    def refused(self, error: Exception) -> Refused:
        """The answer to a request that failed: a status and a line, without the folders of this
        machine. For an internal error it has a number, and the terminal prints the traceback.
        """
        if isinstance(error, Refused):
            return error
        if isinstance(error, HopscopeError):
            status = next(status for kind, status in STATUS if isinstance(error, kind))
            return Refused(status, FOLDERS.sub("", self.views.told(error)))
        number = next(self._mistakes)
        self.note(f"error {number} of this server, a mistake of hopscope:")
        for line in "".join(traceback.format_exception(error)).splitlines():
            self.note(line)
        return Refused(500, f"a mistake of hopscope: see error {number} in its terminal")

    def stop(self) -> None:
        """Stop all that is being computed."""
        for worker in self.workers:
            worker.stop()

    def end(self) -> None:
        """The same, and the threads with it."""
        for worker in self.workers:
            worker.end()


class Reply:
    """Sends an answer, with the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send, self.begun = send, False

    async def whole(self, kind: str, data: bytes, more: Mapping[str, str] = {}) -> None:
        """An answer in one piece."""
        await self._start(200, kind, {"content-length": str(len(data)), **more})
        await self._part(data, more=False)

    async def line(self, data: bytes) -> None:
        """A line of an answer that grows."""
        if not self.begun:  # an error before the first line has a status of its own
            await self._start(200, LINES)
        await self._part(data + b"\n", more=True)

    async def end(self) -> None:
        """No more lines."""
        if not self.begun:
            await self._start(200, LINES)
        await self._part(b"", more=False)

    async def refuse(self, refused: Refused) -> None:
        """Answer with a line and a status; what was not read of the request is not waited for."""
        answer = written({"error": str(refused), "status": refused.status})
        if self.begun:
            await self.line(answer)
            return await self.end()
        again = {"retry-after": "1"} if refused.status == 503 else {}
        length = {"content-length": str(len(answer))}
        await self._start(refused.status, JSON, {**length, **again, "connection": "close"})
        return await self._part(answer, more=False)

    async def _start(self, status: int, kind: str, more: Mapping[str, str] = {}) -> None:
        self.begun = True
        given = {**HEADERS, "content-type": kind, "cache-control": "no-store", **more}
        headers = [(name.encode(), value.encode()) for name, value in given.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _part(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


def _file(ask: Ask, stop: Stop) -> tuple[str, bytes] | None:
    """What was computed, as it is sent; None where nothing was."""
    found = ask(stop)
    if found is None:
        return None
    return (ARRAYS, found) if isinstance(found, bytes) else (JSON, written(found))


def written(answer: Mapping[str, Any]) -> bytes:
    """The answer as one line of JSON."""
    return json.dumps(plain(answer), allow_nan=False).encode()


def _query(text: bytes, known: tuple[str, ...]) -> dict[str, str]:
    """What stands after the question mark: each of these at most once, and nothing else."""
    pairs = [pair.split("=", 1) for pair in text.decode("latin-1").split("&") if text]
    found = {pair[0]: pair[-1] for pair in pairs}
    good = [
        name in known and re.fullmatch(QUERY[name], its, re.ASCII) for name, its in found.items()
    ]
    if len(found) < len(pairs) or not all(good) or any(len(pair) < 2 for pair in pairs):
        expected = " and ".join(f"one {name}=…" for name in known) or "none"
        raise Refused(400, f"the query cannot be read: expected at most {expected}")
    return found


@asynccontextmanager
async def leaving(receive: Receive) -> AsyncGenerator[Left]:
    """Is done as soon as the client has left."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(gone())
    try:
        yield task
    finally:
        task.cancel()
