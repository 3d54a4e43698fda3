"""The routes of the explorer: what the page asks, in HTTP, of a store's views.

Short questions are answered by one thread, single examples by another, computations by a third;
none has more than one in hand, and nobody waits for what is heavier than his own question. An
answer is JSON, arrays are a file of safetensors, and what grows comes line by line.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from hopscope.errors import HopscopeError
from hopscope.web import shell
from hopscope.web.guard import ClientLeft
from hopscope.web.policy import API, EXCHANGE, Refused
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.refusal import refusal
from hopscope.web.strict import read_json
from hopscope.web.tensors import plain
from hopscope.web.token import Once
from hopscope.web.worker import Left, Stop, Worker

ARRAYS = "application/octet-stream"
LINES = "application/x-ndjson"
ID = re.compile(r"[\w.-]{1,100}", re.ASCII)
VIEW = re.compile(r"[\w .-]{1,64}", re.ASCII)
SEED = re.compile(r"\d{1,10}", re.ASCII)
CURSOR = re.compile(r"[\w.-]{0,100}", re.ASCII)
Json = dict[str, Any]


class Answers(Protocol):
    """What is asked of a store: `hopscope.web.views.Views`, or what stands in for it in tests."""

    def runs(self, since: str = "", /) -> Json:
        """Rows that changed since a cursor was given out."""
        ...

    def told(self, error: Exception, /) -> str:
        """An error as one line without the folders of this machine."""
        ...

    def run(self, id_: str, seed: int | None = None, /) -> Json:
        """Everything about a run that is no array."""
        ...

    def at_hand(self, id_: str, name: str, seed: int | None = None, /) -> bytes | None:
        """Arrays of a run, by name, if nothing has to be computed for them."""
        ...

    def arrays(self, id_: str, name: str, seed: int | None, stop: Stop, /) -> bytes:
        """Arrays of a run, computed if need be."""
        ...

    def example(self, id_: str, asked: ExampleQuestion, /) -> bytes:
        """One example, with the attention of every head."""
        ...

    def ablate(self, id_: str, asked: AblateQuestion, stop: Stop, /) -> Json:
        """Losses as the model is, and with changes."""
        ...

    def over_time(self, id_: str, asked: AblateQuestion, stop: Stop, /) -> Iterator[Json]:
        """The same at every checkpoint."""
        ...

    def costs(self, id_: str, asked: CostsQuestion, stop: Stop, /) -> Iterator[Json]:
        """What every head and every path costs."""
        ...

    def views(self, id_: str, /) -> Json:
        """Views of the page that were kept with a run."""
        ...

    def keep(self, id_: str, name: str, view: Json, /) -> None:
        """Keep a view with a run."""
        ...


@dataclass(frozen=True)
class Api:
    """Every route below /api."""

    views: Answers
    short: Worker
    """Answers what takes no computing."""
    looking: Worker
    """Looks at one example at a time."""
    long: Worker
    """Computes."""
    read_only: bool = False

    def routes(self) -> list[Route]:
        """What is asked, and by which method."""
        run = f"{API}/runs/{{id}}"
        gets = {
            f"{API}/runs": self.runs,
            run: self.run,
            f"{run}/arrays/{{name}}": self.arrays,
            f"{run}/views": self.kept,
        }
        posts = {
            f"{run}/example": self.example,
            f"{run}/ablate": self.ablate,
            f"{run}/over-time": self.over_time,
            f"{run}/costs": self.costs,
        }
        puts = {} if self.read_only else {f"{run}/views/{{name}}": self.keep}
        ways = (("GET", gets), ("POST", posts), ("PUT", puts))
        return [Route(path, ask, methods=[how]) for how, all_ in ways for path, ask in all_.items()]

    async def runs(self, request: Request) -> Response:
        """The rows of the table of runs."""
        since = _asked(request, "since", CURSOR) or ""
        return await self._json(self.short, request, lambda _: self.views.runs(since))

    async def run(self, request: Request) -> Response:
        """The description of a run."""
        id_, seed = _named(request), _seed(request)
        return await self._json(self.short, request, lambda _: self.views.run(id_, seed))

    async def arrays(self, request: Request) -> Response:
        """Arrays of a run."""
        id_, name, seed = _named(request), _named(request, "name"), _seed(request)
        async with leaving(request.receive) as left:
            found = await self.short.answer(lambda _: self.views.at_hand(id_, name, seed), left)
            if found is None:
                found = await self.long.answer(
                    lambda stop: self.views.arrays(id_, name, seed, stop), left
                )
        return Response(found, media_type=ARRAYS)

    async def example(self, request: Request) -> Response:
        """One example."""
        id_, asked = _named(request), ExampleQuestion.parse(await _body(request))
        async with leaving(request.receive) as left:
            found = await self.looking.answer(lambda _: self.views.example(id_, asked), left)
        return Response(found, media_type=ARRAYS)

    async def ablate(self, request: Request) -> Response:
        """Losses with changes."""
        id_, asked = _named(request), AblateQuestion.parse(await _body(request))
        return await self._json(
            self.long, request, lambda stop: self.views.ablate(id_, asked, stop)
        )

    async def over_time(self, request: Request) -> "Lines":
        """Losses with changes, at every checkpoint."""
        id_, asked = _named(request), AblateQuestion.parse(await _body(request))
        return Lines(
            self.long, lambda stop: self.views.over_time(id_, asked, stop), self.views.told
        )

    async def costs(self, request: Request) -> "Lines":
        """What every head and path costs."""
        id_, asked = _named(request), CostsQuestion.parse(await _body(request))
        return Lines(self.long, lambda stop: self.views.costs(id_, asked, stop), self.views.told)

    async def kept(self, request: Request) -> Response:
        """The views that were kept."""
        id_ = _named(request)
        return await self._json(self.short, request, lambda _: self.views.views(id_))

    async def keep(self, request: Request) -> Response:
        """Keep a view."""
        id_, name = _named(request), _named(request, "name", VIEW)
        view = read_json(await request.body())

        def keep(_: Stop) -> Json:
            self.views.keep(id_, name, view)
            return {"kept": name}

        return await self._json(self.short, request, keep)

    async def _json(
        self, worker: Worker, request: Request, compute: Callable[[Stop], Json]
    ) -> Response:
        async with leaving(request.receive) as left:
            found = await worker.answer(lambda stop: written(compute(stop)), left)
        return Response(found, media_type="application/json")


@dataclass(frozen=True)
class Lines:
    """An answer that grows: JSON, line by line; the last may be an error."""

    worker: Worker
    compute: Callable[[Stop], Iterator[Json]]
    told: Callable[[Exception], str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        async with (
            leaving(receive) as left,
            aclosing(self.worker.lines(self.compute, left)) as lines,
        ):
            first = await anext(lines, None)  # an error before it has a status of its own
            kind = [(b"content-type", LINES.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": kind})
            try:
                while first is not None:
                    await _send(send, first)
                    first = await anext(lines, None)
            except ClientLeft:
                raise
            except HopscopeError as error:
                refused = refusal(error, self.told)
                await _send(send, {"error": str(refused), "status": refused.status})
            except Exception:
                await _send(send, {"error": "a mistake of hopscope: see its terminal"})
                raise
            await send({"type": "http.response.body", "body": b""})


async def _send(send: Send, line: Json) -> None:
    await send({"type": "http.response.body", "body": written(line) + b"\n", "more_body": True})


def written(answer: Json) -> bytes:
    """The answer as one line of JSON."""
    return json.dumps(plain(answer), allow_nan=False).encode()


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


def _named(request: Request, what: str = "id", form: re.Pattern[str] = ID) -> str:
    """A part of the path, which is looked up as a name and never made into a path."""
    found: str = request.path_params[what]
    if not form.fullmatch(found):
        raise Refused(404, "there is nothing here")
    return found


def _asked(request: Request, what: str, form: re.Pattern[str]) -> str | None:
    """What stands behind the question mark: this one thing, or nothing."""
    pairs = request.query_params.multi_items()
    if not pairs:
        return None
    if len(pairs) > 1 or pairs[0][0] != what or not form.fullmatch(pairs[0][1]):
        raise Refused(400, f"the query cannot be read: expected at most one {what}=…")
    return pairs[0][1]


def _seed(request: Request) -> int | None:
    """Which model of a fleet is asked about."""
    found = _asked(request, "seed", SEED)
    return None if found is None else int(found)


async def _body(request: Request) -> bytes:
    """The question as it was sent, if it can be read in one way only."""
    data = await request.body()
    read_json(data)
    return data


def routed(api: Api, once: Once | None = None) -> Router:
    """The app without its guard; `once` exchanges the word of an address for the token."""

    async def nothing(*_: Any) -> None:
        raise Refused(404, "there is nothing here")

    exchange = [] if once is None else [_exchange(once)]
    routes = [*api.routes(), *exchange, *shell.routes()]
    return Site(routes, redirect_slashes=False, default=nothing)


def _exchange(once: Once) -> Route:
    """Where the word of an address is exchanged."""

    async def exchange(request: Request) -> Response:
        word = read_json(await request.body()).get("word")
        return Response(written({"token": once.exchanged(word)}), media_type="application/json")

    return Route(EXCHANGE, exchange, methods=["POST"])


class Site(Router):
    """A router whose own refusals are errors, as all others are."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["app"] = self  # Starlette answers by itself without one
        try:
            await super().__call__(scope, receive, send)
        except HTTPException as error:
            raise Refused(error.status_code, "this is asked by another method") from None
