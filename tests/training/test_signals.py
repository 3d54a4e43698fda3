"""Who may ask a training to stop: a signal, once obeyed, and the clock."""

import signal
import threading
from collections.abc import Iterator

import pytest

from hopscope.errors import Interrupted
from hopscope.training.signals import (
    SIGNALS,
    StopRequest,
    stop_on_signal,
    time_is_over,
    time_limit,
)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("hopscope.training.signals.time", made)
    return made


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Signals that came through to whoever listened before."""
    found: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, lambda arrived, _: found.append(arrived))
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


def test_time_ends_at_its_limit(clock: Clock) -> None:
    with time_limit(5.0):
        clock.now += 4.9
        assert not time_is_over()
        clock.now += 0.1
        assert time_is_over()
    assert not time_is_over()


def test_no_time_at_all_is_over_at_once(clock: Clock) -> None:
    with time_limit(0.0):
        assert time_is_over()


def test_no_limit_is_none(clock: Clock) -> None:
    assert not time_is_over()
    with time_limit(None):
        clock.now += 1e9
        assert not time_is_over()
        assert StopRequest().signal is None


def test_limits_within_limits_give_back_the_outer_one(clock: Clock) -> None:
    with time_limit(10.0):
        with time_limit(1.0):
            clock.now += 2
            assert time_is_over()
        assert not time_is_over()
        with time_limit(None):
            clock.now += 20
            assert not time_is_over()
        assert time_is_over()
    assert not time_is_over()


def test_an_error_ends_the_limit(clock: Clock) -> None:
    with pytest.raises(ZeroDivisionError), time_limit(0.0):
        raise ZeroDivisionError
    assert not time_is_over()


def test_a_request_by_the_clock_stays(clock: Clock) -> None:
    request = StopRequest()
    with time_limit(1.0):
        assert request.signal is None
        clock.now += 1
        assert request.signal == signal.SIGALRM
    assert not time_is_over()
    assert request.signal == signal.SIGALRM
    assert StopRequest().signal is None


def test_a_signal_is_more_than_the_clock(clock: Clock) -> None:
    request = StopRequest()
    request.note(signal.SIGTERM)
    with time_limit(0.0):
        assert request.signal == signal.SIGTERM


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_noted_and_a_second_obeyed(heard: list[int], number: int) -> None:
    def obeys() -> None:
        with stop_on_signal() as request:
            assert request.signal is None
            signal.raise_signal(number)
            assert request.signal == number
            assert heard == []
            signal.raise_signal(number)
            assert heard == [number]
            raise Interrupted

    with pytest.raises(Interrupted):
        obeys()
    assert heard == [number]
    signal.raise_signal(number)
    assert heard == [number] * 2


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_came_too_late_is_raised_again(heard: list[int], number: int) -> None:
    with stop_on_signal():
        signal.raise_signal(number)
    assert heard == [number]


def test_the_clock_raises_nothing(clock: Clock, heard: list[int]) -> None:
    with time_limit(0.0), stop_on_signal() as request:
        assert request.signal == signal.SIGALRM
    assert heard == []


def test_another_thread_notes_no_signals(heard: list[int]) -> None:
    inside, go_on = threading.Event(), threading.Event()
    requests: list[StopRequest] = []

    def work() -> None:
        with stop_on_signal() as request:
            requests.append(request)
            inside.set()
            go_on.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(10)
    signal.raise_signal(signal.SIGTERM)
    go_on.set()
    thread.join()
    assert heard == [signal.SIGTERM]
    assert requests[0].signal is None


def test_a_hang_up_is_obeyed_unless_it_was_to_be_ignored(heard: list[int]) -> None:
    with stop_on_signal() as request:
        signal.raise_signal(signal.SIGHUP)
        assert request.signal == signal.SIGHUP
    assert heard == [signal.SIGHUP]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    with stop_on_signal() as request:
        signal.raise_signal(signal.SIGHUP)
        assert request.signal is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.raise_signal(signal.SIGTERM)
        assert request.signal == signal.SIGTERM
