"""One computation at a time, a short queue, an end for each."""

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from hopscope.web import worker as worker_module
from hopscope.web.guard import ClientLeft
from hopscope.web.policy import Refused
from hopscope.web.worker import Stop, Worker


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


def until(stop: Stop) -> str:
    while not stop():
        time.sleep(0.001)
    return "stopped"


def test_one_at_a_time_in_a_thread_of_its_own() -> None:
    seen: list[tuple[str, int]] = []

    def look(_: Stop) -> int:
        seen.append(("begins", threading.get_ident()))
        time.sleep(0.01)
        seen.append(("ends", threading.get_ident()))
        return len(seen)

    async def four(worker: Worker) -> list[int]:
        return await asyncio.gather(*(worker.answer(look, never()) for _ in range(4)))

    assert run(four) == [2, 4, 6, 8]
    assert [what for what, _ in seen] == ["begins", "ends"] * 4
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()


def test_too_many_are_told_so_at_once() -> None:
    async def five(worker: Worker) -> list[Any]:
        return await asyncio.gather(
            *(worker.answer(lambda _: time.sleep(0.01), never()) for _ in range(5)),
            return_exceptions=True,
        )

    *fine, refused = run(five)
    assert fine == [None] * 4
    assert (refused.status, str(refused)) == (503, "4 computations wait already: try again")


def test_what_takes_too_long_is_stopped_and_the_next_is_answered() -> None:
    ended: list[str] = []

    async def both(worker: Worker) -> str:
        with pytest.raises(Refused, match=r"took longer than 0\.05 s, and was stopped") as caught:
            await worker.answer(lambda stop: ended.append(until(stop)), never())
        assert caught.value.status == 503
        return await worker.answer(lambda _: "next", never())

    assert run(both, seconds=0.05) == "next"
    assert ended == ["stopped"]


def test_whose_client_left_is_stopped_or_never_begins() -> None:
    begun: list[str] = []

    async def leave(worker: Worker) -> None:
        left = never()
        asyncio.get_running_loop().call_later(0.02, left.set_result, None)
        waiting = worker.answer(lambda _: begun.append("second"), left)
        both = asyncio.gather(worker.answer(until, left), waiting, return_exceptions=True)
        assert [type(each) for each in await both] == [ClientLeft, ClientLeft]

    run(leave)
    assert begun == []


def test_an_error_comes_back_and_the_thread_goes_on() -> None:
    async def fail(worker: Worker) -> str:
        with pytest.raises(ZeroDivisionError):
            await worker.answer(lambda _: 1 / 0, never())
        return await worker.answer(lambda _: "next", never())

    assert run(fail) == "next"


def counting(events: list[str], most: int = 3) -> Callable[[Stop], Iterator[int]]:
    def lines(_: Stop) -> Iterator[int]:
        try:
            for number in range(most):
                events.append(f"line {number}")
                yield number
        finally:
            events.append(f"closed in {threading.current_thread().name}")

    return lines


def asked_between() -> list[str]:
    """What happens, and in which order, when a question follows each line of a stream."""
    events: list[str] = []

    async def between(worker: Worker) -> list[int]:
        found = []
        async with aclosing(worker.lines(counting(events), never())) as lines:
            async for line in lines:
                found.append(line)
                await worker.answer(lambda _: events.append("question"), never())
        return found

    assert run(between) == [0, 1, 2]
    return events


def test_short_questions_come_between_the_lines_of_a_stream_but_not_of_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "MOMENT", 0)
    assert asked_between()[:5] == ["line 0", "question", "line 1", "question", "line 2"]
    monkeypatch.setattr(worker_module, "MOMENT", 60)
    assert asked_between() == [
        *(f"line {n}" for n in range(3)),
        "closed in hopscope-worker",
        *["question"] * 3,
    ]


def test_a_stream_takes_one_place_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read to its end or not; it is closed where it was opened."""
    monkeypatch.setattr(worker_module, "MOMENT", 0)
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


def test_the_end_stops_what_is_computed_and_is_told_to_those_who_wait() -> None:
    async def end(worker: Worker) -> list[Any]:
        asyncio.get_running_loop().call_later(0.02, worker.stop)
        waiting = worker.answer(lambda _: "computed", never())
        both = (worker.answer(until, never()), waiting)
        return await asyncio.gather(*both, return_exceptions=True)

    begun = time.monotonic()
    stopped, refused = run(end, seconds=60)
    assert (stopped, str(refused)) == ("stopped", "the server ends: start `hopscope view` again")
    assert time.monotonic() - begun < 30


def test_the_collector_leaves_alone_what_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large_module.py").write_text("table = [[number] for number in range(5_000)]")
    monkeypatch.syspath_prepend(tmp_path)

    async def load(worker: Worker) -> int:
        before = await worker.answer(lambda _: gc.get_freeze_count(), never())
        await worker.answer(lambda _: __import__("large_module"), never())
        return await worker.answer(lambda _: gc.get_freeze_count() - before, never())

    try:
        assert run(load) > 5_000
    finally:
        gc.unfreeze()
