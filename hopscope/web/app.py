"""The explorer as an ASGI app: checks requests by the policy, computes in threads, and answers.

Every error is caught here and becomes one line; every answer has the same security headers. There
are four threads: for short requests, for single examples, for ablations, and for arrays over all
checkpoints. Each computes one request at a time, so short requests never wait for long ones. An
answer is JSON, a file of safetensors (arrays), or lines of JSON (streams).
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
from hopscope.web.page import page_files
from hopscope.web.policy import API, EXCHANGE, Policy, Refused, RequestHead
from hopscope.web.questions import (
    AblateQuestion,
    Ask,
    CostsQuestion,
    ExampleQuestion,
    ModelQuestion,
    read_json,
)
from hopscope.web.shown import Shown
from hopscope.web.token import Once
from hopscope.web.views import Views
from hopscope.web.worker import ClientLeft, Left, Worker

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
HEADERS = {
    "content-security-policy": (  # the page may load only files of this server
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
"""HTTP status by class of error; the first class that matches counts."""
FOLDERS = re.compile(r"(?<![\w/<:.~-])/(?:[^\s/:'\"]+/)+")
"""The folders of an absolute path."""
STREAMED = ("over-time", "costs")
"""Questions whose answers are lines, one after the other."""
WRITING = ("PUT", "DELETE")
"""Methods of routes that a read-only server does not have."""
QUERY = {"since": r"[\w.-]{0,100}", "seed": r"\d{1,10}", "step": r"\d{1,10}"}
"""Patterns of the values of query parameters."""


@dataclass(frozen=True)
class Limits:
    """Limits on the size and time of a request."""

    body_bytes: int = 256 * 1024
    sending: float = 10.0
    """Seconds to receive a whole request."""
    waiting: int = 16
    """Largest number of requests per thread that compute or wait."""
    computing: float = 30.0
    """Seconds to compute an answer, or the next line of a stream."""


class Request(NamedTuple):
    """A request after it was parsed by its route."""

    parts: Mapping[str, str]
    query: Mapping[str, str]
    asked: Any
    """The parsed body."""

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.parts["id"]

    @property
    def name(self) -> str:
        """The name of the run's array or view."""
        return self.parts["name"]

    def number(self, name: str) -> int | None:
        """Return a number of the query; None if absent."""
        return int(self.query[name]) if name in self.query else None


Compute = Callable[[Request, Ask], Any]
"""Computes an answer; returns None if the next worker of the route must."""


def _nothing(_: bytes) -> None:
    """Ignore the body."""


@dataclass(frozen=True)
class Route:
    """A route: its method and path, the parser of the body, and the functions that compute answers.

    `turns` are tried in order, each in its worker, until one returns an answer.
    """

    method: str
    path: str
    turns: tuple[tuple[Worker, Compute], ...]
    query: tuple[str, ...] = ()
    body: Callable[[bytes], Any] = _nothing
    streams: bool = False

    def parts(self, path: str) -> Mapping[str, str] | None:
        """Return the named parts of a path; None if the path is not of this route."""
        found = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", self.path), path)
        return None if found is None else found.groupdict()


class Explorer:
    """The ASGI app and its worker threads."""

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
        self.page, self._mistakes = page_files(), count(1)
        self.routes = [
            each for each in self._routes(once) if not (read_only and each.method in WRITING)
        ]

    def _routes(self, once: Once | None) -> Iterator[Route]:
        """Yield all routes with their methods and worker threads."""
        views, (short, looking, clicks, stories) = self.views, self.workers
        run = f"{API}/runs/{{id}}"

        def at_hand(q: Request, _: Ask) -> bytes | None:
            return views.shown(q.id, q.number("seed")).at_hand(q.name, q.number("step"))

        def arrays(q: Request, ask: Ask) -> bytes:
            return views.shown(q.id, q.number("seed")).arrays(q.name, q.number("step"), ask)

        def shown(q: Request) -> Shown:
            return views.shown(q.id, q.asked.seed)

        def keep(q: Request, _: Ask) -> dict[str, str]:
            views.keep(q.id, q.name, q.asked)
            return {"removed" if q.asked is None else "kept": q.name}

        def answer(path: str, compute: Compute, *query: str) -> Route:
            return Route("GET", path, ((short, compute),), query)

        asked: tuple[tuple[str, type[ModelQuestion], Worker, Compute], ...] = (
            ("example", ExampleQuestion, looking, lambda q, _: shown(q).example(q.asked)),
            ("ablate", AblateQuestion, clicks, lambda q, ask: shown(q).ablate(q.asked, ask)),
            ("over-time", AblateQuestion, clicks, lambda q, ask: shown(q).over_time(q.asked, ask)),
            ("costs", CostsQuestion, clicks, lambda q, ask: shown(q).costs(q.asked, ask)),
        )
        for what, question, worker, compute in asked:
            turns, streams = ((worker, compute),), what in STREAMED
            yield Route("POST", f"{run}/{what}", turns, body=question.parse, streams=streams)
        yield answer(f"{API}/runs", lambda q, _: views.runs(q.query.get("since", "")), "since")
        yield answer(run, lambda q, _: views.run(q.id, q.number("seed")), "seed")
        yield answer(f"{run}/views", lambda q, _: views.views(q.id))
        both = (short, at_hand), (stories, arrays)
        yield Route("GET", f"{run}/arrays/{{name}}", both, ("seed", "step"))
        yield Route("PUT", f"{run}/views/{{name}}", ((short, keep),), body=read_json)
        yield Route("DELETE", f"{run}/views/{{name}}", ((short, keep),))
        if once is not None:
            exchanged = once.exchanged
            token = (short, lambda q, _: {"token": exchanged(q.asked.get("word"))})
            yield Route("POST", EXCHANGE, (token,), body=read_json)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request."""
        reply = Reply(send)
        try:
            asked = RequestHead.of(scope)
            self.policy.check(asked)
            body = await self._body(receive)
            path = asked.raw_path.decode("ascii").replace("%20", " ")
            if asked.method == "GET" and path in self.page:
                kind, read = self.page[path]
                return await reply.whole(kind, read(), {"cache-control": "no-cache"})
            route, parts = self._route(asked.method, path)
            query = _query(scope["query_string"], route.query)
            request = Request(parts, query, route.body(body))
            async with leaving(receive) as left:
                await self._answer(route, request, reply, left)
        except ClientLeft:
            return None
        except asyncio.CancelledError:
            await reply.refuse(Refused(503, "the server is stopping: start `hopscope view` again"))
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is, it ends here)
            await reply.refuse(self.refused(error))

    def _route(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        found = [(each, parts) for each in self.routes if (parts := each.parts(path)) is not None]
        for route, parts in found:
            if route.method == method:
                return route, parts
        if found or path in self.page:
            raise Refused(405, "wrong HTTP method for this path")
        raise Refused(404, "no such path")

    async def _answer(self, route: Route, asked: Request, reply: "Reply", left: Left) -> None:
        """Send the answer of the first worker that returns one."""
        for worker, compute in route.turns:
            answer = partial(compute, asked)
            if route.streams:
                async with aclosing(worker.lines(answer, left)) as lines:
                    async for line in lines:
                        await reply.line(written(line))
                return await reply.end()
            found = await worker.answer(partial(_file, answer), left)
            if found is not None:
                return await reply.whole(*found)
        return None

    async def _body(self, receive: Receive) -> bytes:
        """Receive the whole body; raises Refused if it is too large or too slow."""
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
        """Convert an error into an answer: a status and a line, without folders of this machine.

        For an internal error the line has a number, and the terminal shows the traceback.
        """
        if isinstance(error, Refused):
            return error
        if isinstance(error, HopscopeError):
            status = next(status for kind, status in STATUS if isinstance(error, kind))
            return Refused(status, FOLDERS.sub("", self.views.told(error)))
        number = next(self._mistakes)
        self.note(f"error {number} of this server, an internal error of hopscope:")
        for line in "".join(traceback.format_exception(error)).splitlines():
            self.note(line)
        return Refused(500, f"an internal error of hopscope: see error {number} in its terminal")

    def stop(self) -> None:
        """Stop all computations."""
        for worker in self.workers:
            worker.stop()

    def end(self) -> None:
        """Stop all computations and threads."""
        for worker in self.workers:
            worker.end()


class Reply:
    """Sends an answer with `HEADERS`."""

    def __init__(self, send: Send) -> None:
        self._send, self.begun = send, False

    async def whole(self, kind: str, data: bytes, more: Mapping[str, str] = {}) -> None:
        """Send an answer in one piece."""
        await self._start(200, kind, {"content-length": str(len(data)), **more})
        await self._part(data, more=False)

    async def line(self, data: bytes) -> None:
        """Send a line of a stream."""
        if not self.begun:  # until here an error can still have its own status
            await self._start(200, LINES)
        await self._part(data + b"\n", more=True)

    async def end(self) -> None:
        """End a stream."""
        if not self.begun:
            await self._start(200, LINES)
        await self._part(b"", more=False)

    async def refuse(self, refused: Refused) -> None:
        """Send an error with its status; the unread rest of the request is ignored."""
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


def _file(answer: Callable[[Ask], Any], ask: Ask) -> tuple[str, bytes] | None:
    """Return the content type and bytes of an answer; None if there is no answer."""
    found = answer(ask)
    if found is None:
        return None
    return (ARRAYS, found) if isinstance(found, bytes) else (JSON, written(found))


def written(answer: Mapping[str, Any]) -> bytes:
    """Return the answer as one line of JSON."""
    return json.dumps(plain(answer), allow_nan=False).encode()


def _query(text: bytes, known: tuple[str, ...]) -> dict[str, str]:
    """Parse a query string; raises Refused for unknown, repeated or invalid parameters."""
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
    """Yield a future that is done when the client disconnects."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(gone())
    try:
        yield task
    finally:
        task.cancel()
