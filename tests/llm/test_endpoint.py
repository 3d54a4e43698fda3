"""The protocol of an endpoint: what is asked, tried again, refused and told, and never the key."""

import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from hopscope.errors import ConfigError, EndpointFailed
from hopscope.llm.answers import answered
from hopscope.llm.backend import Backend, ScoringBackend
from hopscope.llm.endpoint import Endpoint, EndpointSettings

URL = "http://127.0.0.1:8080/v1"
KEY = "sk-very/secret-1234"
ESCAPED = KEY.replace("/", r"\/")
Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def _no_key_but_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOPSCOPE_API_KEY", raising=False)


def chat(text: object) -> httpx.Response:
    return httpx.Response(200, json={"choices": [{"message": {"content": text}}]})


def question(request: httpx.Request) -> str:
    text: str = json.loads(request.content)["messages"][0]["content"]
    return text


class Server:
    """Answers in turn, the last answer for ever; keeps what it was asked and who slept."""

    def __init__(self, *answers: httpx.Response | Exception | Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.slept: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    def open(self, **knobs: Any) -> Endpoint:
        settings = EndpointSettings(**({"url": URL, "model": "tiny"} | knobs))
        return Endpoint(settings, httpx.MockTransport(self), self.slept.append)

    def ask(self, prompts: Sequence[str] = ("Who?",), **knobs: Any) -> list[str]:
        with self.open(**knobs) as endpoint:
            return endpoint.complete(prompts, 0.5, range(len(prompts)))

    def fail(self, **knobs: Any) -> str:
        with pytest.raises(EndpointFailed) as failure:
            self.ask(**knobs)
        text = str(failure.value)
        assert text.isprintable()
        assert text.startswith(knobs.get("url", URL))
        return text


def test_a_chat_question_is_one_user_message() -> None:
    server = Server(chat("Ann"))
    assert server.ask(["Who?"], max_tokens=3) == ["Ann"]
    (request,) = server.requests
    assert (request.method, str(request.url)) == ("POST", URL + "/chat/completions")
    assert json.loads(request.content) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Who?"}],
        "temperature": 0.5,
        "max_tokens": 3,
        "seed": 0,
    }
    assert "Authorization" not in request.headers
    with server.open() as endpoint:
        assert isinstance(endpoint, Backend)
        assert not isinstance(endpoint, ScoringBackend)
        with pytest.raises(ConfigError, match="begins its answers itself"):
            endpoint.complete(["Who?"], 0.0, [0], ["It is"])


def test_a_raw_prompt_goes_to_completions_and_its_answer_can_be_opened() -> None:
    server = Server(httpx.Response(200, json={"choices": [{"text": " Ann"}]}))
    with server.open(chat=False, url=URL + "/") as endpoint:
        assert endpoint.complete(["Who?", "Who?"], 0.0, [0, 0], ["", "It is"]) == [" Ann"] * 2
    assert {str(request.url) for request in server.requests} == {URL + "/completions"}
    bodies = [json.loads(request.content) for request in server.requests]
    assert {body["prompt"] for body in bodies} == {"Who?\nAnswer:", "Who?\nAnswer: It is"}
    assert not any("messages" in body for body in bodies)


def test_an_answer_ends_with_its_line_and_may_be_empty() -> None:
    for said in (" 3\n\nThe value of a is 3.", "\n\n3\nThe", "3"):
        answer = {"text": said, "message": {"content": said}}
        server = Server(httpx.Response(200, json={"choices": [answer]}))
        for chat_ in (True, False):
            assert [answered(text, ["0", "3"]) for text in server.ask(chat=chat_)] == ["3"]
    assert Server(chat("")).ask() == [""]
    assert Server().ask([]) == []


def test_answers_keep_the_order_of_the_questions_and_are_handed_out_as_they_arrive() -> None:
    later = threading.Event()

    def first_waits(request: httpx.Request) -> httpx.Response:
        if question(request) == "0":
            assert later.wait(5)
        elif question(request) == "19":
            later.set()
        return chat(f"to {question(request)}")

    server = Server(first_waits)
    assert server.ask([str(i) for i in range(20)]) == [f"to {i}" for i in range(20)]
    seeds = {question(request): json.loads(request.content)["seed"] for request in server.requests}
    assert seeds == {str(i): i for i in range(20)}
    later.clear()
    indices = []
    with server.open(concurrency=2) as endpoint:
        for index, _ in endpoint.complete_each("012", 0.0, [0, 0, 0]):
            indices.append(index)
            later.set()
    assert sorted(indices) == [0, 1, 2]
    assert indices[0] != 0


def test_no_more_questions_at_once_than_agreed() -> None:
    gate = threading.Barrier(3, timeout=5)  # passes only if three are under way together
    lock = threading.Lock()
    now, most = 0, 0

    def count(request: httpx.Request) -> httpx.Response:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        gate.wait()
        with lock:
            now -= 1
        return chat("x")

    Server(count).ask(["?"] * 12, concurrency=3)
    assert most == 3


def test_what_may_pass_is_tried_again_with_doubling_pauses() -> None:
    passing = [*map(httpx.Response, (429, 500, 502, 503)), httpx.ConnectError("refused")]
    for trouble in (*passing, httpx.ReadTimeout("")):
        server = Server(*[trouble] * 4, chat("Ann"))
        assert server.ask() == ["Ann"]
        for longest, slept in zip([1, 2, 4, 8], server.slept, strict=True):
            assert longest / 2 <= slept <= longest


LAST = [
    (httpx.Response(429, text="busy\n"), "answered 429 (busy) (try 3 of 3): lower requests_per_se"),
    (httpx.Response(503, text="busy\n"), "answered 503 (busy) (try 3 of 3): see the server's own"),
    (httpx.ConnectError("refused"), "cannot be reached: refused (try 3 of 3): start the server"),
    (httpx.RemoteProtocolError("gone"), "cannot be reached: gone (try 3 of 3)"),
    (httpx.ReadTimeout(""), "was silent for 7 s (try 3 of 3): see whether the server is busy"),
]
AT_ONCE = [
    (httpx.Response(401), "401: no key was given; set the environment variable HOPSCOPE_API_KEY"),
    (httpx.Response(403), "403: no key was given; set the environment variable HOPSCOPE_API_KEY"),
    (
        httpx.Response(404, text="no such\nmodel"),
        "path is unknown; correct the model or the URL (n",
    ),
    (
        httpx.Response(400, text="too\n long\x1b[31m" + "x" * 300),
        "answered 400 (too long?[31m" + "x" * 187 + "): change what is asked, or the settings",
    ),
    (
        httpx.Response(307, headers={"Location": "http://elsewhere/v1"}),
        "answered 307, a redirect to http://elsewhere/v1: redirects are not followed; correct",
    ),
    (httpx.Response(302), "a redirect to nowhere"),
    (
        lambda _: httpx.Response(
            200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")
        ),
        "sent an unreadable answer",
    ),
]
NO_ANSWERS = [
    b"", b"<html>\nHello</html>", b"\xff\xfe\xfa", b"[" * 100_000, b"[]", b"null",
    b'{"error": "busy"}', b'{"choices": []}', b'{"choices": [{"message": {"content": null}}]}',
    b'{"choices": [{"message": {"content": ["a"]}}]}', b'{"choices": [{"text": "of the other"}]}',
]  # fmt: skip


def test_every_failure_is_one_line_that_says_what_to_do() -> None:
    for outcome, text in LAST:
        server = Server(outcome)
        assert text in server.fail(attempts=3, timeout=7.0)
        assert (len(server.requests), len(server.slept)) == (3, 2)
    for outcome, text in AT_ONCE:
        server = Server(outcome)
        assert text in server.fail()
        assert (len(server.requests), server.slept) == (1, [])
    for body in NO_ANSWERS:
        server = Server(httpx.Response(200, content=body))
        quote = " ".join(body.decode(errors="replace").split())[:100]
        text = f"answered {quote!r}, which is no JSON with a text at choices[0].message.content"
        assert text in server.fail()
        assert len(server.requests) == 1


def test_the_server_and_the_rate_say_how_long_to_wait() -> None:
    busy = [httpx.Response(429, headers={"Retry-After": after}) for after in ("7", "3600", "0")]
    server = Server(*busy, chat("Ann"))
    assert server.ask() == ["Ann"]
    assert server.slept[:2] == [7, 60]
    assert 2 <= server.slept[2] <= 4  # our own pause is longer
    server = Server(httpx.Response(503), chat("x"))
    server.ask(["?"] * 3, requests_per_second=0.01, concurrency=1)
    (pause, *waits) = sorted(server.slept)  # no real time passes, so each waits for all before it
    assert pause <= 1
    assert waits == pytest.approx([100, 200, 300], abs=5)


def test_one_failure_loses_no_other_answer() -> None:
    under_way, failed = threading.Barrier(3, timeout=5), threading.Event()

    def third_fails(request: httpx.Request) -> httpx.Response:
        under_way.wait()
        if question(request) == "2":
            failed.set()
            return httpx.Response(400, text="first")
        assert failed.wait(5)
        time.sleep(0.1)  # answers that arrive after the failure are still handed out
        return chat(question(request)) if question(request) == "0" else httpx.Response(503)

    server = Server(third_fails)
    answers: list[tuple[int, str]] = []
    with server.open(concurrency=3) as endpoint, pytest.raises(EndpointFailed, match="first"):
        answers.extend(endpoint.complete_each("012345", 0.0, range(6)))
    assert answers == [(0, "0")]
    assert len(server.requests) == 3  # no question is begun after the failure, nor tried again
    assert server.slept == []


def test_a_caller_who_walks_away_asks_no_more() -> None:
    def slow(request: httpx.Request) -> httpx.Response:
        time.sleep(0.01)
        return chat("x")

    server = Server(slow)
    with server.open(concurrency=1) as endpoint:
        for _ in endpoint.complete_each("0" * 100, 0.0, range(100)):
            break
    assert len(server.requests) < 50


def test_faults_of_our_own_and_of_the_caller_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        Server(ZeroDivisionError()).ask(["?"] * 3)
    with Server().open() as endpoint:
        with pytest.raises(ConfigError, match="2 prompts with 1 seeds: give one for each"):
            endpoint.complete_each(["a", "b"], 0.0, [1])
        for temperature in (-1.0, float("nan"), float("inf")):
            with pytest.raises(ConfigError, match="the temperature is .*: give a finite number"):
                endpoint.complete_each(["a"], temperature, [1])


OUTCOMES = [
    httpx.Response(401, text=KEY),
    httpx.Response(404, text=f"wrong key {KEY}"),
    httpx.Response(400, text="x" * 190 + KEY),
    httpx.Response(400, text="your key is " + ESCAPED),
    httpx.Response(400, json={"as JSON in JSON": ESCAPED}),
    httpx.Response(503, text=KEY),
    httpx.Response(302, headers={"Location": f"http://elsewhere/{KEY}"}),
    httpx.Response(200, text=f"<html>{KEY}</html>"),
    httpx.ConnectError(f"Bearer {KEY}"),
]


def test_the_key_is_sent_and_never_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTHER_KEY", KEY + "\n")
    caplog.set_level(logging.DEBUG)
    for outcome in OUTCOMES:
        server = Server(outcome)
        knobs = {"url": "https://example.com/v1", "key_variable": "OTHER_KEY", "attempts": 1}
        with server.open(**knobs) as endpoint:
            with pytest.raises(EndpointFailed) as failure:
                endpoint.complete(["Who?"], 0.0, [0])
            told = [repr(endpoint), repr(endpoint.settings)]
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
        told += traceback.format_exception(failure.value)
        for piece in ("secret", "sk-"):
            assert piece not in "".join(told) + caplog.text, outcome
    assert "HTTP Request" in caplog.text
    text = "the key was refused; set the environment variable OTHER_KEY to a valid key"
    assert text in Server(httpx.Response(401)).fail(**knobs)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.headers["Authorization"], body))
        content = f"to {body['messages'][0]['content']}"
        reply = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
        self.send_response(200 if self.path == "/v1/chat/completions" else 404)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *what: object) -> None:
        pass


@pytest.fixture
def real() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_server_that_is_there_is_asked_once_for_each_prompt(
    real: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for proxy in ("HTTP_PROXY", "ALL_PROXY"):  # nobody listens there
        monkeypatch.setenv(proxy, "http://127.0.0.1:1")
    monkeypatch.setenv("HOPSCOPE_API_KEY", KEY)
    url = f"http://127.0.0.1:{real.server_port}"
    prompts = [str(i) for i in range(30)]
    with Endpoint(EndpointSettings(url + "/v1", "tiny")) as endpoint:
        assert endpoint.complete(prompts, 0.0, range(30)) == [f"to {i}" for i in prompts]
    assert sorted(int(body["messages"][0]["content"]) for _, body in real.asked) == [*range(30)]
    assert {key for key, _ in real.asked} == {f"Bearer {KEY}"}
    with (
        Endpoint(EndpointSettings(url, "tiny")) as endpoint,
        pytest.raises(EndpointFailed, match="404: the model 'tiny' or the path is unknown"),
    ):
        endpoint.complete(["?"], 0.0, [0])
    real.server_close()
    gone = EndpointSettings(url, "tiny", attempts=2)
    with (
        Endpoint(gone, sleep=lambda seconds: None) as endpoint,
        pytest.raises(EndpointFailed, match=r"cannot be reached: .*refused.* \(try 2 of 2\)"),
    ):
        endpoint.complete(["?"], 0.0, [0])
