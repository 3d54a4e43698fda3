"""A thread that computes answers one after the other, while the server continues to answer.

A request joins a short queue, or is refused if the queue is full. A stream queues again for each
line, so that short requests are answered in between. A computation calls `ask()` now and then; if
its client has left or its time is up, `ask()` raises, and the thread is free.
"""

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from hopscope.errors import HopscopeError
from hopscope.web.policy import Refused
from hopscope.web.questions import Ask

T = TypeVar("T")


class ClientLeft(Exception):
    """The client has closed the connection, so there is nothing to answer."""


Left = asyncio.Future[None]
"""A future that is done when the client has left."""
ENDING = 2.0
"""Seconds to wait for the thread when the server ends."""


class Worker:
    """Computes in its own thread; at most `most` requests compute or wait, others are refused."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._asking: set[threading.Event] = set()
        self._turns: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hopscope-worker", daemon=True)
        self._thread.start()

    async def answer(self, compute: Callable[[Ask], T], left: Left) -> T:
        """Return the result of a computation, which takes one turn in the queue."""
        with self._place() as stop:
            return await self._turn(lambda: compute(_asking(stop)), stop, left)

    async def lines(self, compute: Callable[[Ask], Generator[T]], left: Left) -> AsyncGenerator[T]:
        """Yield the lines of a computation; each line takes a turn in the queue."""
        with self._place() as stop:
            found: list[Generator[T]] = []  # opened and closed in the thread

            def following() -> T | None:
                if not found:
                    found.append(compute(_asking(stop)))
                return next(found[0], None)

            try:
                while (line := await self._turn(following, stop, left)) is not None:
                    yield line
            finally:
                self._turns.put(lambda: _close(found))

    def stop(self) -> None:
        """Stop all computations."""
        for stop in tuple(self._asking):
            stop.set()

    def end(self) -> None:
        """Stop all computations and the thread."""
        self.stop()
        self._turns.put(None)
        self._thread.join(ENDING)
        gc.unfreeze()  # undoes the freeze in `_work`

    @contextmanager
    def _place(self) -> Iterator[threading.Event]:
        """Reserve a place in the queue; raises Refused if it is full."""
        if len(self._asking) >= self.most:
            raise Refused(503, f"{self.most} computations wait already: try again")
        stop = threading.Event()
        self._asking.add(stop)
        try:
            yield stop
        finally:
            stop.set()
            self._asking.discard(stop)

    async def _turn(self, compute: Callable[[], T], stop: threading.Event, left: Left) -> T:
        """Run `compute` in the thread and wait for its result.

        Raises ClientLeft if the client leaves, and Refused after `seconds`.
        """
        turn = Future[T]()

        def checked() -> T:
            if stop.is_set():  # the server ends (other stops have cancelled the turn)
                raise Refused(503, "the server is stopping: start `hopscope view` again")
            return compute()

        def begin() -> None:
            if not turn.set_running_or_notify_cancel():
                return
            try:
                turn.set_result(checked())
            except BaseException as error:  # noqa: BLE001  (raised again where it is awaited)
                turn.set_exception(error)

        self._turns.put(begin)
        done = asyncio.wrap_future(turn)
        try:
            both: set[asyncio.Future[Any]] = {done, left}
            await asyncio.wait(both, timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
            if done.done():
                return done.result()
        finally:
            if not done.done():
                stop.set()
                done.cancel()
        if left.done():
            raise ClientLeft
        raise Refused(503, f"this took longer than {self.seconds:g} s, and was stopped")

    def _work(self) -> None:
        known = 0
        while (turn := self._turns.get()) is not None:
            turn()
            if len(sys.modules) > known:
                # Imported modules stay forever, so the garbage collector need not traverse them
                # again: for torch that takes a tenth of a second, in which nothing is answered.
                known = len(sys.modules)
                gc.freeze()


def _asking(stop: threading.Event) -> Ask:
    def ask() -> None:
        if stop.is_set():
            raise HopscopeError("the question was withdrawn before its answer: ask again")

    return ask


def _close(found: list[Generator[T]]) -> None:
    for each in found:
        try:
            each.close()
        except Exception:  # noqa: BLE001  (nobody waits for it; the thread goes on)
            shown = threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread()))
            threading.excepthook(shown)
