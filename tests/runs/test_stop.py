"""Who may ask a run to stop: a signal, once obeyed, and the clock."""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hopscope.errors import Interrupted
from hopscope.runs.stop import SIGNALS, TIME, Stop, exit_code

TAKEN = SIGNALS[:3]
"""Those that are taken from whoever listened before."""


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Signals that came through to whoever listened before."""
    found: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in TAKEN:
        signal.signal(number, lambda arrived, _: found.append(arrived))
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


def test_time_ends_at_its_limit_and_a_person_is_more_than_the_clock() -> None:
    now = [1000.0]
    stop, endless = Stop(5.0, lambda: now[0]), Stop(None, lambda: now[0])
    now[0] += 4.9
    assert stop.reason is None
    now[0] += 0.1
    assert stop.reason == TIME
    now[0] -= 1
    assert stop.reason == TIME  # a reason stays
    now[0] += 1e9
    assert endless.reason is None
    stop = Stop(0.0)
    assert stop.reason == TIME
    stop.ask("the owner")
    assert stop.reason == "the owner"


@pytest.mark.parametrize("number", TAKEN)
def test_a_signal_is_noted_and_a_second_obeyed(heard: list[int], number: int) -> None:
    def obeys(stop: Stop) -> None:
        """A sweep listens all the time, and so does each of its runs."""
        with stop.listening():
            with stop.listening():
                assert stop.reason is None
                signal.raise_signal(number)
                assert stop.reason == signal.Signals(number).name
                assert heard == []
            assert heard == []
            signal.raise_signal(number)
            assert heard == [number]
            raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        obeys(Stop())
    assert heard == [number]
    signal.raise_signal(number)  # and afterwards all is as it was
    assert heard == [number] * 2
    heard.clear()
    with Stop().listening():
        signal.raise_signal(number)
    assert heard == [number]  # it came too late, and is raised again


def test_the_clock_raises_nothing(heard: list[int]) -> None:
    stop = Stop(0.0)
    with stop.listening():
        assert stop.reason == TIME
    assert heard == []


def test_another_thread_notes_no_signals(heard: list[int]) -> None:
    inside, go_on = threading.Event(), threading.Event()
    stop = Stop()

    def work() -> None:
        with stop.listening():
            inside.set()
            go_on.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    signal.raise_signal(signal.SIGTERM)
    go_on.set()
    thread.join()
    assert heard == [signal.SIGTERM]
    assert stop.reason is None


def test_a_hang_up_that_was_to_be_ignored_stays_so(heard: list[int]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    stop = Stop()
    with stop.listening():
        signal.raise_signal(signal.SIGHUP)
        assert stop.reason is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.raise_signal(signal.SIGTERM)
        assert stop.reason == "SIGTERM"


def test_the_warning_of_a_scheduler_is_heard_unless_somebody_else_listens() -> None:
    stop = Stop()
    with suppress(Interrupted), stop.listening():
        with stop.listening():
            signal.raise_signal(signal.SIGUSR1)
        raise Interrupted("stopped")
    assert stop.reason == "SIGUSR1"
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    theirs: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: theirs.append(number))
    try:
        stop = Stop()
        with stop.listening():
            signal.raise_signal(signal.SIGUSR1)
        assert stop.reason is None
        assert theirs == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def test_a_stop_exits_as_shells_say_it_or_asks_to_be_queued_again() -> None:
    reasons = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", TIME, "the owner"]
    assert [exit_code(reason) for reason in reasons] == [130, 75, 129, 75, 75, 130]
