"""Endpoints: what is asked, tried again, refused and told, and never the key; where, and when."""

import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from calling import Patch

from hopscope.errors import ConfigError, EndpointFailed
from hopscope.llm.backend import Backend, ScoringBackend
from hopscope.llm.endpoint import Endpoint, EndpointSettings
from hopscope.llm.patience import LONGEST_PAUSE, Throttle, pause, retry_after
from hopscope.llm.server import is_loopback, open_client, read_key

URL = "http://127.0.0.1:8080/v1"
KEY = "sk-very/secret-1234"
ESCAPED = KEY.replace("/", r"\/")
Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def _no_key_but_the_tests(monkeypatch: Patch) -> None:
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


def test_an_answer_may_be_empty_and_so_may_the_questions() -> None:
    assert Server(chat("")).ask() == [""]
    assert Server().ask([]) == []


def test_answers_are_handed_out_as_they_arrive_and_keep_the_order_of_the_questions() -> None:
    later = threading.Event()

    def first_waits(request: httpx.Request) -> httpx.Response:
        if question(request) == "0":
            assert later.wait(5)
        return chat(f"to {question(request)}")

    server, indices = Server(first_waits), []
    with server.open(concurrency=2) as endpoint:
        for index, _ in endpoint.complete_each("012", 0.0, [0, 0, 0]):
            indices.append(index)
            later.set()
    assert sorted(indices) == [0, 1, 2]
    assert indices[0] != 0
    server = Server(lambda request: chat(f"to {question(request)}"))
    assert server.ask([str(i) for i in range(20)]) == [f"to {i}" for i in range(20)]
    seeds = {question(request): json.loads(request.content)["seed"] for request in server.requests}
    assert seeds == {str(i): i for i in range(20)}


def test_as_many_questions_at_once_as_agreed() -> None:
    gate = threading.Barrier(3, timeout=5)  # passes only if three are under way together
    threads = set()

    def count(request: httpx.Request) -> httpx.Response:
        threads.add(threading.get_ident())
        gate.wait()
        return chat("x")

    Server(count).ask(["?"] * 12, concurrency=3)
    assert len(threads) == 3


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
    (
        lambda _: httpx.Response(
            200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")
        ),
        "sent an unreadable answer",
    ),
]
NO_ANSWERS = [
    b"", b"<html>\nHello</html>", b"\xff\xfe\xfa", b"[" * 100_000, b"[]", b"null",
    b'{"choices": []}', b'{"choices": [{"message": {"content": ["a"]}}]}',
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
        for seeds, temperature, line in (
            ([1], 0.0, "2 prompts with 1 seeds: give one for each"),
            ([1, 2], -1.0, "the temperature is -1.0: give a finite number from 0 up"),
            ([1, 2], float("nan"), "the temperature is nan: give a finite number from 0 up"),
        ):
            with pytest.raises(ConfigError, match=line):
                endpoint.complete_each(["a", "b"], temperature, seeds)


OUTCOMES = [
    httpx.Response(401, text=KEY),
    httpx.Response(400, text="x" * 190 + KEY),
    httpx.Response(400, json={"as JSON in JSON": ESCAPED}),
    httpx.Response(503, text=KEY),
    httpx.Response(302, headers={"Location": f"http://elsewhere/{KEY}"}),
    httpx.Response(200, text=f"<html>{KEY}</html>"),
    httpx.ConnectError(f"Bearer {KEY}"),
]


def test_the_key_is_sent_and_never_told(
    monkeypatch: Patch, caplog: pytest.LogCaptureFixture
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
        content = f"{self.headers['Authorization']}: {body['messages'][0]['content']}"
        reply = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *what: object) -> None:
        pass


def test_a_server_of_this_machine_is_asked_past_any_proxy(monkeypatch: Patch) -> None:
    for proxy in ("HTTP_PROXY", "ALL_PROXY"):  # nobody listens there
        monkeypatch.setenv(proxy, "http://127.0.0.1:1")
    monkeypatch.setenv("HOPSCOPE_API_KEY", KEY)
    prompts = [str(i) for i in range(30)]
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        with Endpoint(EndpointSettings(url, "tiny")) as endpoint:
            found = endpoint.complete(prompts, 0.0, range(30))
        server.shutdown()
    assert found == [f"Bearer {KEY}: {prompt}" for prompt in prompts]


GOOD = {
    "http://LOCALHOST:1/v1": True,
    "http://127.9.9.9:65535/v1/": True,
    "http://[::1]:8080/v1": True,
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


def test_the_key_comes_from_its_variable(monkeypatch: Patch) -> None:
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


def test_clients_that_cannot_be_opened_are_refused(monkeypatch: Patch) -> None:
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


def test_a_throttle_spaces_questions_and_saves_no_time_up(monkeypatch: Patch) -> None:
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
