"""What becomes of the key: it is sent, and it is never told."""

import logging
import traceback

import httpx
import pytest

from hopscope.errors import EndpointFailed
from hopscope.llm.endpoint import Endpoint, EndpointSettings

KEY = "sk-very/secret-1234"
ESCAPED = KEY.replace("/", r"\/")


@pytest.mark.parametrize(
    "outcome",
    [
        httpx.Response(401, text=KEY),
        httpx.Response(404, text=f"wrong key {KEY}"),
        httpx.Response(400, text="x" * 190 + KEY),
        httpx.Response(400, text="your key is " + ESCAPED),
        httpx.Response(400, json={"as JSON in JSON": ESCAPED}),
        httpx.Response(503, text=KEY),
        httpx.Response(302, headers={"Location": f"http://elsewhere/{KEY}"}),
        httpx.Response(200, text=f"<html>{KEY}</html>"),
        httpx.ConnectError(f"Bearer {KEY}"),
    ],
)
def test_the_key_is_sent_and_never_told(
    outcome: httpx.Response | Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setenv("OTHER_KEY", KEY + "\n")
    caplog.set_level(logging.DEBUG)
    settings = EndpointSettings(
        "https://example.com/v1", "tiny", key_variable="OTHER_KEY", attempts=1
    )
    with Endpoint(settings, httpx.MockTransport(answer)) as endpoint:
        with pytest.raises(EndpointFailed) as failure:
            endpoint.complete(["Who?"], 0.0, [0])
        told = [repr(endpoint), repr(settings), *traceback.format_exception(failure.value)]
    assert "HTTP Request" in caplog.text or isinstance(outcome, Exception)
    for piece in ("secret", "sk-"):
        assert piece not in "".join(told) + caplog.text


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (KEY, "the key was refused; set the environment variable HOPSCOPE_API_KEY to a valid key"),
        ("", "no key was given; set the environment variable HOPSCOPE_API_KEY to a valid key"),
    ],
)
def test_a_refusal_names_the_variable(monkeypatch: pytest.MonkeyPatch, key: str, text: str) -> None:
    monkeypatch.setenv("HOPSCOPE_API_KEY", key)
    transport = httpx.MockTransport(lambda request: httpx.Response(401))
    settings = EndpointSettings("https://example.com/v1", "tiny")
    with Endpoint(settings, transport) as endpoint, pytest.raises(EndpointFailed, match=text):
        endpoint.complete(["Who?"], 0.0, [0])
