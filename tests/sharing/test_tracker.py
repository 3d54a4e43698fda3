"""Sending and following, to a tracker that is a dictionary."""

from collections.abc import Callable, Sequence

import pytest

from hopscope.errors import SharingError
from hopscope.sharing.tracked import Row, Tracked, tracked
from hopscope.sharing.tracker import TRACKERS, Place, follow, library, send, tracker
from hopscope.store import RunFolder

Record = Callable[[RunFolder, int, int], None]


class Book:
    """Keeps all that it is told."""

    def __init__(self) -> None:
        self.runs: dict[str, list[Row]] = {}
        self.open = 0

    def begin(self, run: Tracked) -> "Page":
        self.open += 1
        return Page(self, self.runs.setdefault(run.id, []))


class Page:
    where = "the book"

    def __init__(self, book: Book, rows: list[Row]) -> None:
        self.book, self.rows = book, rows
        self.last = max((step for step, _ in rows), default=-1)

    def has(self, series: str) -> bool:
        return any(series in values for _, values in self.rows)

    def add(self, rows: Sequence[Row]) -> None:
        self.rows += rows

    def close(self) -> None:
        self.book.open -= 1


def test_a_run_that_is_sent_twice_is_there_once(fleet: RunFolder) -> None:
    book, runs = Book(), tracked(fleet)
    assert [sent.steps for sent in send(runs, book)] == [7, 7]
    assert [sent.steps for sent in send(runs, book)] == [0, 0]
    assert book.runs == {run.id: run.rows() for run in runs}
    assert book.open == 0


def test_a_series_that_is_kept_later_is_added(fleet: RunFolder, late: Callable[[], None]) -> None:
    book, runs = Book(), tracked(fleet)[:1]
    list(send(runs, book))
    late()
    assert [sent.steps for _ in range(2) for sent in send(runs, book)] == [2, 0]
    told = {(step, name): v for step, own in book.runs[runs[0].id] for name, v in own.items()}
    assert told == {(step, name): v for step, own in runs[0].rows() for name, v in own.items()}
    assert [step for step, _ in book.runs[runs[0].id]] == [*range(7), 0, 4]


def test_a_run_without_numbers_is_refused(empty: RunFolder) -> None:
    with pytest.raises(SharingError, match="has no numbers to send: it was not trained"):
        list(send(tracked(empty), Book()))


def test_a_run_is_followed_until_it_is_complete(empty: RunFolder, record: Record) -> None:
    book, portions = Book(), [(0, 2), (3, 6)]

    def pause() -> None:
        """Another process trains it meanwhile."""
        record(RunFolder(empty.path), *portions.pop(0))

    sent = list(follow(tracked(empty), book, pause))
    assert [each.steps for each in sent] == [3, 3, 4, 4]
    assert book.runs == {run.id: run.rows() for run in tracked(RunFolder(empty.path))}
    assert (portions, book.open) == ([], 0)


def test_an_interruption_closes_what_is_open(fleet: RunFolder, empty: RunFolder) -> None:
    def pause() -> None:
        raise KeyboardInterrupt

    book = Book()
    with pytest.raises(KeyboardInterrupt):
        list(follow(tracked(empty), book, pause))
    assert book.open == 0


@pytest.mark.parametrize("name", TRACKERS)
def test_a_library_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, name, None)
    if name == "tensorboard":  # written by ourselves
        assert tracker(name, Place())
        return
    with pytest.raises(SharingError, match=f"pip install 'hopscope\\[{name}\\]'"):
        tracker(name, Place())
    with pytest.raises(SharingError, match=f"{name} is not installed"):
        library(name)
