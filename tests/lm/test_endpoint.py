"""Endpoints: what is asked, tried again and refused, in one line each; and never the key."""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest
from calling import Patch

from hopscope.errors import ConfigError, EndpointFailed
from hopscope.lm import endpoint
from hopscope.lm.endpoint import Endpoint
from hopscope.lm.prompts import Question

httpx = pytest.importorskip("httpx2")
pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="no openai")

URL = "http://127.0.0.1:8080/v1"
KEY = "sk-very/secret-1234"
ESCAPED = KEY.replace("/", r"\/")
ASKED = Question("Who?", "Ann", ("Ann",), (), 0, 0)
Outcome = Any
"""A response, an exception, or a function of a request."""


@pytest.fixture(autouse=True)
def waits(monkeypatch: Patch) -> list[float]:
    """The pauses between tries, none of which takes time; and no key but the tests'."""
    monkeypatch.delenv("HOPSCOPE_API_KEY", raising=False)
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


class Server:
    """Answers in turn, the last answer for ever; keeps what it was asked."""

    def __init__(self, *answers: Outcome) -> None:
        self.answers = list(answers)
        self.requests: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def open(self, url: str = URL, **options: Any) -> Endpoint:
        from openai import DefaultHttpxClient

        client = DefaultHttpxClient(transport=httpx.MockTransport(self), follow_redirects=False)
        return Endpoint(url, "tiny", http_client=client, **options)

    def ask(self, **options: Any) -> str:
        return self.open(**options).answer(ASKED, 0.5, 7)


def chat(text: object) -> Callable[[Any], Any]:
    return lambda _: httpx.Response(200, json={"choices": [{"message": {"content": text}}]})


def test_a_chat_question_is_one_user_message_and_nothing_of_the_environment(
    monkeypatch: Patch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "sk-of-another")
    server = Server(chat(""))
    assert server.ask(max_tokens=3) == ""
    (request,) = server.requests
    assert (request.method, str(request.url)) == ("POST", URL + "/chat/completions")
    assert json.loads(request.content) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Who?"}],
        "temperature": 0.5,
        "max_tokens": 3,
        "seed": 7,
    }
    assert "sk-of-another" not in str(request.headers.raw)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-key: sk-of-another")
    with pytest.raises(ConfigError, match="OPENAI_CUSTOM_HEADERS would be sent to http.*: unset"):
        server.open()


def test_half_a_character_does_not_come_into_the_answer() -> None:
    content = rb'{"choices": [{"message": {"content": "Ann\ud83d"}}]}'
    headers = {"Content-Type": "application/json"}
    server = Server(lambda _: httpx.Response(200, content=content, headers=headers))
    assert server.ask() == "Ann?"


def test_a_raw_prompt_goes_to_completions_and_its_answer_can_be_opened() -> None:
    server = Server(lambda _: httpx.Response(200, json={"choices": [{"text": " Ann"}]}))
    opened = Question("Who?", "Ann", ("Ann",), (), 0, 0, "It is")
    raw = server.open(chat=False, url=URL + "/")
    assert [raw.answer(each, 0.0, 0) for each in (ASKED, opened)] == [" Ann"] * 2
    assert {str(request.url) for request in server.requests} == {URL + "/completions"}
    bodies = [json.loads(request.content) for request in server.requests]
    assert [body["prompt"] for body in bodies] == ["Who?\nAnswer:", "Who?\nAnswer: It is"]


def test_what_may_pass_is_tried_again_as_long_as_the_server_asks(waits: list[float]) -> None:
    def busy(_: Any) -> Any:
        return httpx.Response(429, headers={"Retry-After": "7"})

    passing = [lambda _, s=status: httpx.Response(s) for status in (500, 503)]
    server = Server(busy, *passing, httpx.ConnectError("refused"), chat("Ann"))
    assert server.ask() == "Ann"
    assert len(server.requests) == 5
    assert waits[0] == 7
    assert 0 < min(waits) < max(waits) < 10


TRIED = [
    (lambda _: httpx.Response(429, text="busy\n"), "answered 429 (busy), 5 times: ask later"),
    (httpx.ConnectError("refused"), "cannot be reached (refused): start the server, or correct"),
    (httpx.ReadTimeout(""), "did not answer for 60 s: check whether the server is busy"),
]
AT_ONCE = [
    (lambda _: httpx.Response(401), "answered 401: no key was given; set $HOPSCOPE_API_KEY to a"),
    (
        lambda _: httpx.Response(404, text="no such\nmodel"),
        "answered 404 (no such model): correct the URL, or the model 'tiny'",
    ),
    (
        lambda _: httpx.Response(400, text="too\n long\x1b[31m" + "x" * 300),
        "answered 400 (too long?[31m" + "x" * 137 + "): correct the URL or the request",
    ),
    (lambda _: httpx.Response(307, headers={"Location": "http://elsewhere/v1"}), "answered 307"),
    *(
        (lambda _, b=body: httpx.Response(200, content=b), "sent no text of an OpenAI-compatible")
        for body in (
            b"", b"\xff\xfe\xfa", b"null", b'{"choices": []}',
            b'{"choices": [{"message": {"content": ["a"]}}]}', b'{"choices": [{"text": "a"}]}',
        )
    ),
]  # fmt: skip


def test_every_failure_is_one_line_that_says_what_to_do(waits: list[float]) -> None:
    for outcomes, tries in ((TRIED, 5), (AT_ONCE, 1)):
        for outcome, line in outcomes:
            server = Server(outcome)
            with pytest.raises(EndpointFailed) as failure:
                server.ask()
            text = str(failure.value)
            assert text.startswith(URL)
            assert line in text
            assert text.isprintable()
            assert len(server.requests) == tries, line


REPEATED = [
    lambda _: httpx.Response(401, text=KEY),
    lambda _: httpx.Response(400, json={"as JSON in JSON": ESCAPED}),
    lambda _: httpx.Response(302, headers={"Location": f"http://elsewhere/{KEY}"}),
    lambda _: httpx.Response(200, text=f"<html>{KEY}</html>"),
    httpx.ConnectError(f"Bearer {KEY}"),
]


def test_the_key_is_sent_and_never_shown(
    monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOPSCOPE_API_KEY", KEY + "\n")
    caplog.set_level(logging.INFO)
    for outcome in REPEATED:
        server = Server(outcome)
        with pytest.raises(EndpointFailed) as failure:
            server.ask(url="https://example.com/v1")
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
        shown = "".join(traceback.format_exception(failure.value)) + caplog.text
        assert "secret" not in shown
        assert "sk-" not in shown
    with pytest.raises(EndpointFailed, match="401: the key was refused; set .HOPSCOPE_API_KEY"):
        Server(lambda _: httpx.Response(401)).ask()
    monkeypatch.setenv("HOPSCOPE_API_KEY", "two words")
    with pytest.raises(ConfigError, match="holds spaces or other characters") as refused:
        Server().open()
    assert "two words" not in str(refused.value)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = f"{self.headers['Authorization']}: {body['messages'][0]['content']}"
        reply = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *what: object) -> None:
        pass


def test_a_server_of_this_machine_is_asked_past_any_proxy(monkeypatch: Patch) -> None:
    for proxy in ("HTTP_PROXY", "ALL_PROXY"):  # nobody listens there
        monkeypatch.setenv(proxy, "http://127.0.0.1:1")
    monkeypatch.setenv("HOPSCOPE_API_KEY", KEY)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        there = Endpoint(f"http://127.0.0.1:{server.server_port}/v1", "tiny")
        assert there.answer(ASKED, 0.0, 0) == f"Bearer {KEY}: Who?"
        server.shutdown()


HTTPS, SUCH, BARE = "needs https", "give one such as http://127.0.0.1:8080/v1", "one of @ . #: give"
URLS = {
    "http://LOCALHOST:1/v1": True,
    "http://[::1]:8080/v1": True,
    "https://localhost.example.com/v1": False,
    "https://my_models.example.com/api/v1": False,
    **dict.fromkeys(
        (f"http://{host}/v1" for host in (
            "example.com", "127.0.0.1.example.com", "0.0.0.0", "[2001:db8::1]",
        )),
        HTTPS,
    ),
    **dict.fromkeys(
        ("localhost:8080/v1", "ftp://localhost/v1", "http://localhost\\.example.com/v1",
         "http://localhost:99999/v1", "http://localhost/v1\n", "http:///v1"),
        SUCH,
    ),
    "https://me:secret@example.com/v1": BARE,
    "https://example.com/v1?key=secret": BARE,
    URL + "/chat/completions": "give it up to and with /v1, no further",
}  # fmt: skip
"""Whether that is this machine, or why it is refused."""


def test_without_the_client_only_the_client_is_asked_for(monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError, match=r"needs openai: python -m pip install 'openai>=\S+'$"):
        Endpoint(URL, "ours")


def test_a_key_goes_in_clear_to_this_machine_only() -> None:
    for url, expected in URLS.items():
        if isinstance(expected, bool):
            assert endpoint._check_url(url) is expected, url
            continue
        with pytest.raises(ConfigError, match=expected) as refused:
            Endpoint(url, "tiny")
        assert "secret" not in str(refused.value)
