"""The endpoint against servers that are really there."""

import json
import logging
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hopscope.errors import EndpointFailed
from hopscope.llm.endpoint import Endpoint, EndpointSettings

KEY = "sk-very/secret-1234"


class RealServer(ThreadingHTTPServer):
    asked: list[tuple[str, str | None, dict[str, Any]]]


class Handler(BaseHTTPRequestHandler):
    server: RealServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        content = f"to {body['messages'][0]['content']}"
        reply = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
        self.send_response(200 if self.path == "/v1/chat/completions" else 404)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *what: object) -> None:
        pass


@pytest.fixture
def real() -> Iterator[RealServer]:
    with RealServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_real_server_is_asked_once_for_each_prompt(
    real: RealServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for proxy in ("HTTP_PROXY", "ALL_PROXY"):  # nobody listens there
        monkeypatch.setenv(proxy, "http://127.0.0.1:1")
    monkeypatch.setenv("HOPSCOPE_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    url = f"http://127.0.0.1:{real.server_port}"
    prompts = [str(i) for i in range(30)]
    with Endpoint(EndpointSettings(url + "/v1", "tiny")) as endpoint:
        assert endpoint.complete(prompts, 0.0, range(30)) == [f"to {i}" for i in prompts]
    assert sorted(int(body["messages"][0]["content"]) for *_, body in real.asked) == [*range(30)]
    assert {key for _, key, _ in real.asked} == {f"Bearer {KEY}"}
    with (
        Endpoint(EndpointSettings(url, "tiny")) as endpoint,
        pytest.raises(EndpointFailed, match="404: the model 'tiny' or the path is unknown"),
    ):
        endpoint.complete(["?"], 0.0, [0])
    assert "secret" not in caplog.text


def test_a_server_that_is_not_there(real: RealServer) -> None:
    port = real.server_port
    real.server_close()
    settings = EndpointSettings(f"http://127.0.0.1:{port}/v1", "tiny", attempts=2)
    with (
        Endpoint(settings, sleep=lambda seconds: None) as endpoint,
        pytest.raises(EndpointFailed, match=r"cannot be reached: .*refused.* \(try 2 of 2\)"),
    ):
        endpoint.complete(["?"], 0.0, [0])


@pytest.mark.slow
def test_llama_cpp_answers() -> None:
    """The path of a small instruction-tuned GGUF comes from HOPSCOPE_TEST_GGUF."""
    xllamacpp = pytest.importorskip("xllamacpp")
    if not (path := os.environ.get("HOPSCOPE_TEST_GGUF")):
        pytest.skip("HOPSCOPE_TEST_GGUF names no model")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = 256
    parameters.n_parallel = 1
    server = xllamacpp.Server(parameters)
    url = f"{server.listening_address}/v1"
    with Endpoint(EndpointSettings(url, "local")) as endpoint:
        (answer,) = endpoint.complete(["What is the capital of France? One word."], 0.0, [0])
    assert "Paris" in answer
    with Endpoint(EndpointSettings(url, "local", chat=False, max_tokens=4)) as endpoint:
        (answer,) = endpoint.complete(["The capital of France is"], 0.0, [0])
    assert "Paris" in answer
