"""One computation at a time, a short queue, an end for each."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from hopscope.web.questions import Ask
from hopscope.web.worker import ClientLeft, Worker


def run(work: Callable[[Worker], Awaitable[Any]], most: int = 4, seconds: float = 5) -> Any:
    """What happens with a worker, in a loop of its own."""

    async def begun() -> Any:
        return await work(worker)

    threads = threading.active_count()
    worker = Worker(most, seconds)
    try:
        return asyncio.run(begun())
    finally:
        worker.end()
        assert threading.active_count() <= threads


def never() -> "asyncio.Future[None]":
    """Nobody leaves."""
    return asyncio.get_running_loop().create_future()


def forever(ask: Ask) -> None:
    while True:
        ask()
        time.sleep(0.001)


def test_one_at_a_time_in_a_thread_of_its_own() -> None:
    seen: list[tuple[str, int]] = []

    def look(_: Ask) -> int:
        seen.append(("begins", threading.get_ident()))
        time.sleep(0.01)
        seen.append(("ends", threading.get_ident()))
        return len(seen)

    async def four(worker: Worker) -> list[int]:
        with pytest.raises(ZeroDivisionError):  # an error comes back, and the thread goes on
            await worker.answer(lambda _: 1 / 0, never())
        return await asyncio.gather(*(worker.answer(look, never()) for _ in range(4)))

    assert run(four) == [2, 4, 6, 8]
    assert [what for what, _ in seen] == ["begins", "ends"] * 4
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()


def test_whose_client_left_is_stopped_or_never_begins() -> None:
    begun: list[str] = []

    async def leave(worker: Worker) -> None:
        left = never()
        asyncio.get_running_loop().call_later(0.02, left.set_result, None)
        waiting = worker.answer(lambda _: begun.append("second"), left)
        both = asyncio.gather(worker.answer(forever, left), waiting, return_exceptions=True)
        assert [type(each) for each in await both] == [ClientLeft, ClientLeft]

    run(leave)
    assert begun == []


def counting(events: list[str], most: int = 3) -> Callable[[Ask], Iterator[int]]:
    def lines(_: Ask) -> Iterator[int]:
        try:
            for number in range(most):
                events.append(f"line {number}")
                yield number
        finally:
            events.append(f"closed in {threading.current_thread().name}")

    return lines


def test_short_questions_come_between_the_lines_of_a_stream() -> None:
    events: list[str] = []

    async def between(worker: Worker) -> list[int]:
        found = []
        async with aclosing(worker.lines(counting(events), never())) as lines:
            async for line in lines:
                found.append(line)
                await worker.answer(lambda _: events.append("question"), never())
        return found

    assert run(between) == [0, 1, 2]
    assert events[:5] == ["line 0", "question", "line 1", "question", "line 2"]


def test_a_stream_takes_one_place_and_gives_it_back() -> None:
    """Read to its end or not; it is closed where it was opened."""
    events: list[str] = []

    async def again(worker: Worker) -> list[list[int]]:
        found = []
        for _ in range(5):
            async with aclosing(worker.lines(counting([]), never())) as lines:
                found.append([line async for line in lines])
        async with aclosing(worker.lines(counting(events), never())) as lines:
            await anext(lines)
        return found

    assert run(again, most=1) == [[0, 1, 2]] * 5
    assert events == ["line 0", "closed in hopscope-worker"]


def test_a_stream_that_cannot_be_closed_is_shown_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda error: shown.append(error.exc_type))

    def lines(_: Ask) -> Generator[int]:
        try:
            yield 0
        finally:
            raise OSError

    async def then_another(worker: Worker) -> int:
        async with aclosing(worker.lines(lines, never())) as found:
            await anext(found)
        return await worker.answer(lambda _: 2, never())

    assert run(then_another) == 2
    assert shown == [OSError]
