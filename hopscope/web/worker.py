"""One thread that computes, one thing after the other, while the server goes on answering.

A request takes its place in a short queue, or is told that too many wait. A stream takes a turn for
the lines of a moment, so that short questions come between. A computation is told to stop when its
client has left or its time is up: `stop()` is then true, and a line later the thread is free.
"""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from hopscope.web.guard import ClientLeft
from hopscope.web.policy import Refused

T = TypeVar("T")
Stop = Callable[[], bool]
Left = asyncio.Future[None]
"""Is done when the client has left."""
ENDING = 5.0
"""Seconds that a computation has to end when the server does."""
MOMENT = 0.02
"""Seconds for which a stream has its turn, if its lines come faster than that."""


class Worker:
    """Computes in a thread of its own; for at most `most` requests at a time, the others wait."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._asking: set[threading.Event] = set()
        self._turns: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hopscope-worker", daemon=True)
        self._thread.start()

    async def answer(self, compute: Callable[[Stop], T], left: Left) -> T:
        """What a computation gives, in this request's turn."""
        with self._place() as stop:
            return await self._turn(lambda: compute(stop.is_set), stop, left)

    async def lines(self, compute: Callable[[Stop], Iterator[T]], left: Left) -> AsyncGenerator[T]:
        """What a computation gives line by line, in many turns."""
        with self._place() as stop:
            found: list[Iterator[T]] = []  # closed where it was opened: in the thread
            failed: list[Exception] = []

            def following() -> list[T]:
                if not found:
                    found.append(iter(compute(stop.is_set)))
                end, some = time.monotonic() + MOMENT, list[T]()
                if failed:
                    raise failed.pop()
                try:
                    for line in found[0]:
                        some.append(line)
                        if time.monotonic() >= end:
                            break
                except Exception as error:
                    if not some:
                        raise
                    failed.append(error)  # after the lines that came before it
                return some

            try:
                while some := await self._turn(following, stop, left):
                    for line in some:
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
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(set_it: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(lambda: None if done.done() else set_it())

        def turn() -> None:
            if stop.is_set():  # those whose client has left, or whose time is up, heard of it
                ended = Refused(503, "the server ends: start `hopscope view` again")
                settle(lambda: done.set_exception(ended))
                return
            try:
                value = compute()
            except BaseException as error:  # noqa: BLE001  (raised again where it is awaited)
                settle(lambda error=error: done.set_exception(error))  # type: ignore[misc]
            else:
                settle(lambda: done.set_result(value))

        self._turns.put(turn)
        first = asyncio.FIRST_COMPLETED
        try:
            both: set[asyncio.Future[Any]] = {done, left}
            await asyncio.wait(both, timeout=self.seconds, return_when=first)
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


def _close(found: Sequence[Iterator[object]]) -> None:
    """End a generator where it stands."""
    for each in found:
        if hasattr(each, "close"):
            each.close()
