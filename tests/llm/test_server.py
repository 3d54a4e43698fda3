"""Where an endpoint is and when it is asked: addresses, settings, keys, pauses."""

import time
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from hopscope.errors import ConfigError
from hopscope.llm.patience import LONGEST_PAUSE, Throttle, pause, retry_after
from hopscope.llm.server import EndpointSettings, is_loopback, open_client, read_key

URL = "http://127.0.0.1:8080/v1"
GOOD = {
    "http://localhost/v1": True,
    "http://LOCALHOST:1/v1": True,
    "http://127.9.9.9:65535/v1/": True,
    "http://[::1]:8080/v1": True,
    "https://localhost/v1": True,
    "https://localhost.example.com/v1": False,
    "https://my_models.example.com/api/v1": False,
    "https://[2001:db8::1]/v1": False,
}
"""Whether that is this machine."""
HTTPS, SUCH, BARE = "needs https", "give one such as http://127.0.0.1:8080/v1", "one of @ ? #: give"
BAD = [
    *({"url": f"http://{host}/v1"} | {"text": HTTPS} for host in (
        "example.com", "127.0.0.1.example.com", "128.0.0.1", "0.0.0.0", "[2001:db8::1]",
    )),
    *({"url": url, "text": SUCH} for url in (
        "localhost:8080/v1", "ftp://localhost/v1", "http://localhost\\.example.com/v1",
        "http://localhost:99999/v1", "https://[::::]/v1", "https://a..b/v1",
        "http://localhost/v1\n",
    )),
    {"url": "https://me:secret@example.com/v1", "text": BARE},
    {"url": "https://example.com/v1?key=secret", "text": BARE},
    {"url": URL + "/chat/completions", "text": "give it up to and with /v1, no further"},
    {"model": "", "text": "the model is '': give the name"},
    {"key_variable": "sk-secret", "text": "key_variable is no name of an environment variable"},
    {"max_tokens": 0, "text": "max_tokens is 0: give 1 or more"},
    {"concurrency": 0, "text": "concurrency is 0: give 1 or more"},
    {"attempts": -1, "text": "attempts is -1: give 1 or more"},
    {"timeout": 0.0, "text": "timeout is 0.0: give a finite number above 0"},
    {"requests_per_second": float("nan"), "text": "requests_per_second is nan: give a finite"},
]  # fmt: skip


def test_addresses_and_settings_that_make_no_sense_are_refused() -> None:
    for url, here in GOOD.items():
        assert EndpointSettings(url, "tiny").url == url
        assert is_loopback(url) == here, url
    for row in BAD:
        knobs: dict[str, Any] = {"url": URL, "model": "tiny"} | row
        text = knobs.pop("text")
        with pytest.raises(ConfigError) as error:
            EndpointSettings(**knobs)
        assert text in str(error.value), row
        assert "secret" not in str(error.value)
        assert str(error.value).isprintable()


def test_the_key_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTHER_KEY", raising=False)
    assert read_key("OTHER_KEY") == ""
    for value, key in ((" ", ""), ("sk-1\n", "sk-1")):  # as a file read by the shell may leave it
        monkeypatch.setenv("OTHER_KEY", value)
        assert read_key("OTHER_KEY") == key
    for key in ("two words", "line\nbreak", "schlüssel"):
        monkeypatch.setenv("OTHER_KEY", key)
        with pytest.raises(ConfigError, match="OTHER_KEY holds spaces or other") as error:
            read_key("OTHER_KEY")
        assert key not in "".join(traceback.format_exception(error.value))


def test_clients_that_cannot_be_opened_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://me:secret@proxy")
    open_client(EndpointSettings(URL, "tiny"), "", None).close()  # without a proxy
    with pytest.raises(ConfigError, match="proxy or certificates cannot be used: .*") as error:
        open_client(EndpointSettings("https://example.com/v1", "tiny"), "", None)
    assert "secret" not in "".join(traceback.format_exception(error.value))
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    with pytest.raises(ConfigError, match=r"needs httpx: pip install hopscope\[llm\]"):
        open_client(EndpointSettings(URL, "tiny"), "", None)


def test_servers_are_given_the_time_that_they_ask_for_within_bounds() -> None:
    for header, seconds in {
        "7": 7, "7.5": 7.5, "3600": LONGEST_PAUSE, "inf": LONGEST_PAUSE, "-5": 0, "nan": 0, "": 0,
        "soon": 0, "Thu, 01 Jan 1970 00:00:00 GMT": 0,
        "Wed, 01 Jan 2970 00:00:00 -0000": LONGEST_PAUSE,
        "Wed, 01 Jan 99999999999 00:00:00 GMT": 0,
    }.items():  # fmt: skip
        assert retry_after(header) == seconds, header
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < retry_after(date) <= 30
    for attempt, longest in [(1, 1), (2, 2), (6, 32), (7, 60), (5000, 60)]:
        drawn = [pause(attempt) for _ in range(50)]
        assert longest / 2 <= min(drawn) < max(drawn) <= longest


def test_a_throttle_spaces_questions_and_saves_no_time_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = 100.0, []

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now)
    throttle = Throttle(20.0, sleep)
    throttle.wait()
    now += 0.06
    throttle.wait()
    assert slept == []
    for _ in range(3):
        throttle.wait()
    assert slept == [pytest.approx(0.05)] * 3
    free = Throttle(None, sleep)
    free.wait()
    free.wait()
    assert len(slept) == 3
