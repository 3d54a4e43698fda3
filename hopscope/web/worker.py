"""One thread that computes, one thing after the other, while the server goes on answering.

A request takes its place in a short queue, or is told that too many wait. A stream takes a turn for
each line, so that short questions come between. A computation asks now and then whether somebody
waits for it: where its client has left or its time is up, `ask()` raises, and the thread is free.
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
    """Whoever asked has closed the connection: nobody is there to be told anything."""


Left = asyncio.Future[None]
"""Is done when the client has left."""
ENDING = 2.0
"""Seconds that a computation has to end when the server does."""


class Worker:
    """Computes in a thread of its own; for at most `most` requests at a time, the others wait."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._asking: set[threading.Event] = set()
        self._turns: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hopscope-worker", daemon=True)
        self._thread.start()

    async def answer(self, compute: Callable[[Ask], T], left: Left) -> T:
        """What a computation gives, in this request's turn."""
        with self._place() as stop:
            return await self._turn(lambda: compute(_asking(stop)), stop, left)

    async def lines(self, compute: Callable[[Ask], Generator[T]], left: Left) -> AsyncGenerator[T]:
        """What a computation gives line by line, in many turns."""
        with self._place() as stop:
            found: list[Generator[T]] = []  # closed where it was opened: in the thread

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
        """Stop what is being computed."""
        for stop in tuple(self._asking):
            stop.set()

    def end(self) -> None:
        """Stop what is being computed, and the thread."""
        self.stop()
        self._turns.put(None)
        self._thread.join(ENDING)
        gc.unfreeze()  # what ends with the process is to be found

    @contextmanager
    def _place(self) -> Iterator[threading.Event]:
        """A place among those who ask."""
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
        """Wait for one's turn and its end, but not for longer than is allowed."""
        turn = Future[T]()

        def checked() -> T:
            if stop.is_set():  # those whose client has left, or whose time is up, heard of it
                raise Refused(503, "the server ends: start `hopscope view` again")
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
                # What was imported stays for ever. The collector need not walk through it again
                # and again: of torch that takes a tenth of a second, in which nobody is answered.
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
