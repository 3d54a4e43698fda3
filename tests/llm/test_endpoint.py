import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

from hopscope.errors import ConfigError, EndpointFailed
from hopscope.llm.answers import answered
from hopscope.llm.backend import Backend
from hopscope.llm.endpoint import Endpoint, EndpointSettings

URL = "http://127.0.0.1:8080/v1"
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


def test_a_raw_prompt_goes_to_completions() -> None:
    server = Server(httpx.Response(200, json={"choices": [{"text": " Ann"}]}))
    assert server.ask(["Who is"], chat=False, url=URL + "/") == [" Ann"]
    (request,) = server.requests
    assert str(request.url) == URL + "/completions"
    body = json.loads(request.content)
    assert body["prompt"] == "Who is\nAnswer:"
    assert "messages" not in body


def test_a_raw_answer_can_be_opened_and_a_chat_cannot() -> None:
    server = Server(httpx.Response(200, json={"choices": [{"text": " Ann"}]}))
    with server.open(chat=False) as endpoint:
        assert endpoint.complete(["Who?"], 0.0, [0], ["It is"]) == [" Ann"]
    assert json.loads(server.requests[0].content)["prompt"] == "Who?\nAnswer: It is"
    with Server().open() as endpoint, pytest.raises(ConfigError, match="begins its answers itself"):
        endpoint.complete(["Who?"], 0.0, [0], ["It is"])


@pytest.mark.parametrize("said", [" 3\n\nThe value of a is 3.", "\n\n3\nThe", "3"])
def test_an_answer_ends_with_its_line_as_that_of_a_local_model_does(said: str) -> None:
    answer = {"text": said, "message": {"content": said}}
    server = Server(httpx.Response(200, json={"choices": [answer]}))
    for chat_ in (True, False):
        assert [answered(text, ["0", "3"]) for text in server.ask(chat=chat_)] == ["3"]


def test_an_endpoint_is_a_backend() -> None:
    with Server().open() as endpoint:
        assert isinstance(endpoint, Backend)
        assert endpoint.name == "tiny"


def test_an_empty_answer_is_an_answer_and_no_prompt_no_question() -> None:
    assert Server(chat("")).ask() == [""]
    server = Server(chat("x"))
    assert server.ask([]) == []
    assert server.requests == []


def test_answers_keep_the_order_of_the_questions() -> None:
    def slow_first(request: httpx.Request) -> httpx.Response:
        time.sleep(0.1 if question(request) == "0" else 0)
        return chat(f"to {question(request)}")

    server = Server(slow_first)
    assert server.ask([str(i) for i in range(20)]) == [f"to {i}" for i in range(20)]
    seeds = {question(request): json.loads(request.content)["seed"] for request in server.requests}
    assert seeds == {str(i): i for i in range(20)}
    with server.open(concurrency=2) as endpoint:
        indices = [index for index, _ in endpoint.complete_each("012", 0.0, [0, 0, 0])]
    assert indices[-1] == 0  # handed out as they arrive


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
        time.sleep(0.01)
        with lock:
            now -= 1
        return chat("x")

    Server(count).ask(["?"] * 12, concurrency=3)
    assert most == 3


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_what_may_pass_is_tried_again_with_doubling_pauses(status: int) -> None:
    server = Server(*[httpx.Response(status)] * 4, chat("Ann"))
    assert server.ask() == ["Ann"]
    assert len(server.requests) == 5
    for longest, slept in zip([1, 2, 4, 8], server.slept, strict=True):
        assert longest / 2 <= slept <= longest


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, r"answered 429 (busy) (try 3 of 3): lower requests_per_second or concurrency, or"),
        (503, r"answered 503 (busy) (try 3 of 3): see the server's own log, or ask later"),
    ],
)
def test_the_last_try_says_the_status_and_what_to_do(status: int, text: str) -> None:
    server = Server(httpx.Response(status, text="busy\n"))
    assert text in server.fail(attempts=3)
    assert (len(server.requests), len(server.slept)) == (3, 2)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (httpx.ConnectError("refused"), "cannot be reached: refused (try 2 of 2): start the serv"),
        (httpx.RemoteProtocolError("gone"), "cannot be reached: gone (try 2 of 2)"),
        (httpx.ReadTimeout(""), "was silent for 7 s (try 2 of 2): see whether the server is busy"),
    ],
)
def test_lost_connections_are_tried_again(error: Exception, text: str) -> None:
    assert Server(error, chat("Ann")).ask() == ["Ann"]
    assert text in Server(error).fail(attempts=2, timeout=7.0)


def test_the_server_says_how_long_to_wait() -> None:
    busy = [httpx.Response(429, headers={"Retry-After": after}) for after in ("7", "3600", "0")]
    server = Server(*busy, chat("Ann"))
    assert server.ask() == ["Ann"]
    assert server.slept[:2] == [7, 60]
    assert 2 <= server.slept[2] <= 4  # our own pause is longer


def test_requests_are_spaced_by_the_rate() -> None:
    server = Server(httpx.Response(503), chat("x"))
    server.ask(["?"] * 3, requests_per_second=0.01, concurrency=1)
    (pause, *waits) = sorted(server.slept)  # no real time passes, so each waits for all before it
    assert pause <= 1
    assert waits == pytest.approx([100, 200, 300], abs=5)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (httpx.Response(401), "401: no key was given; set the environment variable HOPSCOPE_API_K"),
        (httpx.Response(403), "403: no key was given; set the environment variable HOPSCOPE_API_K"),
        (
            httpx.Response(404, text="no such\nmodel"),
            "404: the model 'tiny' or the path is unknown; correct the model or the URL (no such m",
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
    ],
)
def test_what_will_not_pass_fails_at_once(response: httpx.Response, text: str) -> None:
    server = Server(response)
    assert text in server.fail()
    assert (len(server.requests), server.slept) == (1, [])


NO_ANSWERS = [
    b"", b"<html>\nHello</html>", b"\xff\xfe\xfa", b"[" * 100_000, b"[]", b"null",
    b'{"error": "busy"}',
    b'{"choices": []}',
    b'{"choices": [{"message": {"content": null}}]}',
    b'{"choices": [{"message": {"content": ["a"]}}]}',
    b'{"choices": [{"text": "of the other kind"}]}',
]  # fmt: skip


@pytest.mark.parametrize("body", NO_ANSWERS)
def test_an_answer_that_is_none_is_quoted(body: bytes) -> None:
    server = Server(httpx.Response(200, content=body))
    text = server.fail()
    quote = " ".join(body.decode(errors="replace").split())[:100]
    assert f"answered {quote!r}, which is no JSON with a text at choices[0].message.content" in text
    assert len(server.requests) == 1


def test_an_answer_that_cannot_be_unpacked_fails() -> None:
    def torn(request: httpx.Request) -> httpx.Response:
        stream = httpx.ByteStream(b"no gzip")
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=stream)

    assert "sent an unreadable answer" in Server(torn).fail()


def test_one_failure_loses_no_other_answer() -> None:
    under_way = threading.Barrier(3, timeout=5)

    def third_fails(request: httpx.Request) -> httpx.Response:
        under_way.wait()
        if question(request) == "2":
            return httpx.Response(400, text="first")
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


def test_a_fault_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        Server(ZeroDivisionError()).ask(["?"] * 3)


def test_questions_that_make_no_sense_are_refused_before_the_first_is_asked() -> None:
    with Server().open() as endpoint:
        with pytest.raises(ConfigError, match="2 prompts with 1 seeds: give one for each"):
            endpoint.complete_each(["a", "b"], 0.0, [1])
        for temperature in (-1.0, float("nan"), float("inf")):
            with pytest.raises(ConfigError, match="the temperature is .*: give a finite number"):
                endpoint.complete_each(["a"], temperature, [1])
