import builtins
import traceback
from typing import Any

import pytest

from hopscope.errors import ConfigError
from hopscope.llm.server import EndpointSettings, is_loopback, open_client, read_key

URL = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost/v1", True),
        ("http://LOCALHOST:1/v1", True),
        ("http://127.9.9.9:65535/v1/", True),
        ("http://[::1]:8080/v1", True),
        ("https://localhost/v1", True),
        ("https://localhost.example.com/v1", False),
        ("https://my_models.example.com/api/v1", False),
        ("https://[2001:db8::1]/v1", False),
    ],
)
def test_good_urls(url: str, here: bool) -> None:
    assert EndpointSettings(url, "tiny").url == url
    assert is_loopback(url) == here


@pytest.mark.parametrize(
    ("knobs", "text"),
    [
        ({"url": "http://example.com/v1"}, "'http://example.com/v1': a host other than this mach"),
        ({"url": "http://127.0.0.1.example.com/v1"}, "a host other than this machine needs https"),
        ({"url": "http://128.0.0.1/v1"}, "a host other than this machine needs https"),
        ({"url": "http://0.0.0.0/v1"}, "a host other than this machine needs https"),
        ({"url": "http://[2001:db8::1]/v1"}, "a host other than this machine needs https"),
        ({"url": "localhost:8080/v1"}, "give one such as http://127.0.0.1:8080/v1"),
        ({"url": "ftp://localhost/v1"}, "give one such as http://127.0.0.1:8080/v1"),
        ({"url": "http://localhost\\.example.com/v1"}, "give one such as"),
        ({"url": "http://localhost:99999/v1"}, "give one such as"),
        ({"url": "https://[::::]/v1"}, "give one such as"),
        ({"url": "https://a..b/v1"}, "give one such as"),
        ({"url": "http://localhost/v1\n"}, "give one such as"),
        (
            {"url": "https://me:secret@example.com/v1"},
            "the URL holds one of @ ? #: give it without",
        ),
        ({"url": "https://example.com/v1?key=secret"}, "the URL holds one of @ ? #"),
        ({"url": URL + "/chat/completions"}, "give it up to and with /v1, no further"),
        ({"model": ""}, "the model is '': give the name"),
        ({"key_variable": "sk-secret"}, "key_variable is no name of an environment variable"),
        ({"max_tokens": 0}, "max_tokens is 0: give 1 or more"),
        ({"concurrency": 0}, "concurrency is 0: give 1 or more"),
        ({"attempts": -1}, "attempts is -1: give 1 or more"),
        ({"timeout": 0.0}, "timeout is 0.0: give a finite number above 0"),
        ({"requests_per_second": float("nan")}, "requests_per_second is nan: give a finite"),
    ],
)
def test_settings_that_make_no_sense_are_refused(knobs: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as error:
        EndpointSettings(**({"url": URL, "model": "tiny"} | knobs))
    assert text in str(error.value)
    assert "secret" not in str(error.value)
    assert str(error.value).isprintable()


def test_the_key_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTHER_KEY", raising=False)
    assert read_key("OTHER_KEY") == ""
    monkeypatch.setenv("OTHER_KEY", " ")
    assert read_key("OTHER_KEY") == ""
    monkeypatch.setenv("OTHER_KEY", "sk-1\n")  # as a file read by the shell may leave it
    assert read_key("OTHER_KEY") == "sk-1"


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("HOPSCOPE_API_KEY", key)
    with pytest.raises(ConfigError, match="HOPSCOPE_API_KEY holds spaces or other") as error:
        read_key("HOPSCOPE_API_KEY")
    assert key not in "".join(traceback.format_exception(error.value))


def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "httpx":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ConfigError, match=r"needs httpx: pip install hopscope\[llm\]"):
        open_client(EndpointSettings(URL, "tiny"), "", None)


def test_an_impossible_proxy_is_refused_unless_the_server_is_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://me:secret@proxy")
    open_client(EndpointSettings(URL, "tiny"), "", None).close()
    with pytest.raises(ConfigError, match="proxy or certificates cannot be used: .*") as error:
        open_client(EndpointSettings("https://example.com/v1", "tiny"), "", None)
    assert "secret" not in "".join(traceback.format_exception(error.value))
