"""Bytes that no browser would send, and clients that keep the server waiting."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from asking import TOKEN, check_headers
from attacks import PATHS
from served import Served, heard, request, served
from standin import RUN, SECRET

from hopscope.web.connection import Connection
from hopscope.web.guard import Limits

GOOD = request("GET", "/api/runs")
POST = f"POST /api/runs/{RUN}/ablate HTTP/1.1\r\n".encode()
SURE = f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n".encode()
HOST = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch, served(limits=Limits(sending=0.3)) as running:
        patch.setattr(Connection, "patience", 0.3)
        yield running


def raw_requests() -> Iterator[bytes]:
    """Requests that must not be answered, as a server could read them in two ways."""
    tail = b"\r\n" + SURE + b"Connection: close\r\n\r\n"
    for path in (path for path in PATHS if not path.endswith(b"?")):
        yield b"GET " + path + b" HTTP/1.1\r\nHost: localhost" + tail
    get, end = b"GET /api/runs HTTP/1.1\r\n", HOST + SURE + b"\r\n"
    yield b"GET /api/runs HTTP/1.0\r\n" + SURE + b"\r\n"
    yield b"GET http://evil.test/api/runs HTTP/1.1\r\n" + end
    yield b"GET http://localhost/api/runs HTTP/1.1\r\nHost: evil.test\r\n" + SURE + b"\r\n"
    yield b"CONNECT localhost:80 HTTP/1.1\r\n" + end
    yield b"get /api/runs HTTP/1.1\r\n" + end
    yield b"GET /api/runs HTTP/2.0\r\n" + end
    yield b"GET /api/runs HTTP/0.9\r\n" + end
    yield b"GET /api/runs\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64
    yield b"\x00" * 32_768
    yield b"\r\n" * 20_000
    yield b"G" * 40_000
    yield b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n" + end
    yield get + b"X: " + b"x" * 70_000 + b"\r\n" + end
    yield get + b"".join(b"X-%d: y\r\n" % number for number in range(200)) + end
    yield get + b"Host : localhost\r\n" + SURE + b"\r\n"
    yield get + b" Host: localhost\r\n" + SURE + b"\r\n"
    yield get + HOST + b"Authorization: Bearer\r\n " + TOKEN.encode() + b"x\r\n\r\n"
    yield get + b"Host: localhost\r\n .evil.test\r\n" + SURE + b"\r\n"
    yield get + b"Host: localhost\x00\r\n" + SURE + b"\r\n"
    yield get + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n" + SURE + b"\r\n"
    ablate = POST + HOST + SURE
    yield ablate + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    yield ablate + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "
    yield ablate + b"Content-Length: -2\r\n\r\n{}"
    yield ablate + b"Content-Length: 2 2\r\n\r\n{}"
    yield ablate + b"Content-Length: 99999999999999999999\r\n\r\n{}"
    yield ablate + b"Transfer-Encoding: gzip\r\n\r\n{}"
    yield ablate + b"Transfer-Encoding: chunked, gzip\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    yield ablate + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"
    yield ablate + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n"
    yield (
        ablate + b"Transfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b" " * 32_768 + b"\r\n" * 10
    )


RAW = list(raw_requests())


def test_no_bytes_are_answered_that_should_not_be(server: Served) -> None:
    assert len(RAW) >= 80
    server.views.asked.clear()
    answered = 0
    for data in RAW:
        answer = server.send(data)
        assert SECRET.encode() not in answer, data[:200]
        if answer:
            check(answer)
            assert answer.split(b" ", 2)[1].startswith(b"4"), (data[:200], answer[:200])
        answered += bool(answer)
    assert answered >= 80
    assert server.views.asked == []
    for good in (GOOD, GOOD.replace(b"HTTP/1.1", b"HTTP/1.0")):
        answer = server.send(good)
        assert answer.startswith(b"HTTP/1.1 200")
        assert SECRET.encode() in answer
        check(answer)


def check(answer: bytes) -> None:
    """The headers are those of every answer."""
    head = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head)}
    assert len(headers) == len(head)
    check_headers(headers, "/api", 0)


def test_every_request_of_a_connection_is_looked_at(server: Served) -> None:
    """A connection that was good once has no credit."""
    first = request("GET", "/api/runs", Connection="")
    for second in (
        request("GET", "/api/runs", Host="evil.test"),
        request("GET", "/api/runs", Authorization=""),
    ):
        answers = server.send(first + second)
        assert answers.count(b"HTTP/1.1 ") == 2
        assert answers.count(SECRET.encode()) == 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(Connection, "patience", 0.3)
    monkeypatch.setattr(Connection, "most", 8)
    with served() as running:
        yield running


def closed(client: socket.socket, within: float) -> bool:
    """Does the server close the connection?"""
    client.settimeout(within)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_half_a_request_is_not_waited_for(impatient: Served) -> None:
    """Nor one that comes byte by byte, nor the next after an answer."""
    for begun in (b"", b"GET /", GOOD[:-2]):
        with impatient.connect() as client:
            client.sendall(begun)
            assert not closed(client, 0.05)
            assert closed(client, 5)
    with impatient.connect() as client:
        client.sendall(request("GET", "/api/runs", Connection=""))
        assert heard(client).startswith(b"HTTP/1.1 200")  # until it is closed
    with impatient.connect() as client:
        begun_at = time.monotonic()
        with suppress(OSError):
            for byte in GOOD[:-4] * 4:
                client.sendall(bytes([byte]))
                if closed(client, 0.05):
                    break
        assert 0.2 < time.monotonic() - begun_at < 5


def test_who_asks_at_once_is_answered_beside_many_who_hang(impatient: Served) -> None:
    hanging = [impatient.connect() for _ in range(100)]
    try:
        for client in hanging[::2]:
            client.sendall(b"GET /api")
        begun = time.monotonic()
        assert impatient.get().startswith(b"HTTP/1.1 200")  # one of many that are new
        time.sleep(0.05)
        assert impatient.get().startswith(b"HTTP/1.1 200")
        assert time.monotonic() - begun < 1
        assert len(impatient.server.server_state.connections) <= 8
        assert closed(hanging[0], 5)
    finally:
        for client in hanging:
            client.close()


def test_a_crowd_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """However new they are; without that guard all stay."""
    monkeypatch.setattr(Connection, "patience", 60.0)
    for most, crowd, stay in ((4, 16, range(17)), (1_000, 1_000, range(50, 52))):
        monkeypatch.setattr(Connection, "most", most)
        monkeypatch.setattr(Connection, "crowd", crowd)
        with served() as running, ExitStack() as clients:
            for _ in range(50):
                clients.enter_context(running.connect())
            assert running.get().startswith(b"HTTP/1.1 200")
            assert len(running.server.server_state.connections) in stay


def test_a_reader_that_does_not_read_is_given_up(impatient: Served) -> None:
    impatient.views.endless = True
    with impatient.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.sendall(request("POST", f"/api/runs/{RUN}/costs", b"{}"))
        end = time.monotonic() + 30
        while impatient.views.streaming or not impatient.views.asked:
            assert impatient.get().startswith(b"HTTP/1.1 200")
            assert time.monotonic() < end
            time.sleep(0.05)
