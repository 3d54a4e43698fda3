"""The server that answers: an app behind its guard, three threads that work for it, and uvicorn."""

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import uvicorn
from starlette.routing import Route

from hopscope.web import shell
from hopscope.web.app import Answers, Api, routed
from hopscope.web.connection import Connection
from hopscope.web.guard import Guard, Limits
from hopscope.web.listening import WAITING
from hopscope.web.policy import HEADER_BYTES, Policy
from hopscope.web.refusal import refusal
from hopscope.web.token import Once
from hopscope.web.worker import Worker

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE = 2
"""Seconds that answers have to go out when the server ends."""
SWITCH = 0.0005
"""Seconds after which a thread that computes lets the one that answers have its turn."""
AT_ONCE = 16
"""Connections that are accepted before others are answered; more of them wait in the system."""
LOOK = 0.25
"""Seconds between looks at whether it is to end."""


@dataclass(frozen=True)
class Explorer:
    """The whole app, and the threads that work for it."""

    app: Guard
    routes: Sequence[Route]
    workers: Sequence[Worker]

    def stop(self) -> None:
        """Stop all that is being computed."""
        for worker in self.workers:
            worker.stop()

    def end(self) -> None:
        """The same, and the threads with it."""
        for worker in self.workers:
            worker.end()


def explorer(
    views: Answers,
    policy: Policy,
    note: Callable[[str], None],
    *,
    limits: Limits | None = None,
    read_only: bool = False,
    once: Once | None = None,
) -> Explorer:
    """An app that answers from these views, to whom this policy lets through."""
    limits = limits or Limits()
    short, looking, long = (Worker(limits.waiting, limits.computing) for _ in range(3))
    site = routed(Api(views, short, looking, long, read_only), once)
    guard = Guard(site, policy, partial(refusal, told=views.told), note, limits)
    return Explorer(
        guard, [each for each in site.routes if isinstance(each, Route)], (short, looking, long)
    )


def public() -> list[str]:
    """The paths of the page itself, which hold no data."""
    return list(shell.contents())


class Server(uvicorn.Server):
    """uvicorn without its words, that a signal ends without an error."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        super().__init__(
            uvicorn.Config(
                explorer.app,
                loop="asyncio",
                http=Connection,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,  # any neighbour could forge them
                server_header=False,
                backlog=AT_ONCE,
                h11_max_incomplete_event_size=HEADER_BYTES,
                timeout_graceful_shutdown=GRACE,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Let more wait than asyncio, which takes the number that it accepts at once."""
        await super().startup(sockets)
        for opened in sockets or ():
            opened.listen(WAITING)

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn looks ten times a second, which an idle server need not."""
        while not await self.on_tick(0):
            await asyncio.sleep(LOOK)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Computations are told to stop before their clients are waited for."""
        self.explorer.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ctrl-C and its like end the server; afterwards they mean what they meant."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in ENDING}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def serve(explorer: Explorer, opened: socket.socket) -> None:
    """Answer at this socket, until a signal comes."""
    sys.setswitchinterval(SWITCH)
    try:
        Server(explorer).run([opened])
    finally:
        explorer.end()
