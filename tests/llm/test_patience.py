import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from hopscope.llm.patience import LONGEST_PAUSE, Throttle, pause, retry_after


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("7.5", 7.5),
        ("3600", LONGEST_PAUSE),
        ("inf", LONGEST_PAUSE),
        ("-5", 0),
        ("nan", 0),
        ("", 0),
        ("soon", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wed, 01 Jan 2970 00:00:00 -0000", LONGEST_PAUSE),
        ("Wed, 01 Jan 99999999999 00:00:00 GMT", 0),
    ],
)
def test_what_the_server_asks_for(header: str, seconds: float) -> None:
    assert retry_after(header) == seconds


def test_a_date_is_counted_from_now() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < retry_after(date) <= 30


def test_pauses_double_up_to_the_longest() -> None:
    for attempt, longest in [(1, 1), (2, 2), (6, 32), (7, 60), (5000, 60)]:
        drawn = [pause(attempt) for _ in range(50)]
        assert longest / 2 <= min(drawn) < max(drawn) <= longest


def test_a_throttle_spaces_in_real_time() -> None:
    throttle = Throttle(50.0, time.sleep)
    start = time.monotonic()
    for _ in range(6):
        throttle.wait()
    assert time.monotonic() - start >= 5 / 50


def test_time_unused_is_not_saved_up() -> None:
    slept: list[float] = []
    throttle = Throttle(20.0, slept.append)
    throttle.wait()
    time.sleep(0.06)
    throttle.wait()
    assert slept == []
    throttle.wait()
    assert slept == [pytest.approx(0.05, abs=0.02)]


def test_no_rate_is_no_wait() -> None:
    slept: list[float] = []
    throttle = Throttle(None, slept.append)
    for _ in range(100):
        throttle.wait()
    assert slept == []
