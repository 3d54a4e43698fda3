"""The server as a whole: bytes that no browser would send, clients that keep it waiting or leave,
its end.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from asking import TOKEN, check_headers
from served import Served, heard, request, served
from standin import RUN, SECRET, StandIn
from waiting import until

from hopscope.web.serving import Patience

GOOD = request("GET", "/api/runs")
HEAVY = request("POST", f"/api/runs/{RUN}/ablate", b"{}")
COSTS = request("POST", f"/api/runs/{RUN}/costs", b"{}")
POST = f"POST /api/runs/{RUN}/ablate HTTP/1.1\r\n".encode()
SURE = f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n".encode()
HOST = b"Host: localhost\r\n"
SHORT = Patience(most=8, patience=0.3, moment=0.1, look=0.02)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(patience=SHORT) as running:
        yield running


def raw_requests() -> Iterator[bytes]:
    """Requests that a server could read in two ways, that never end, or that are no HTTP. (What
    HTTP may ask is decided in `test_policy`.)
    """
    get, end = b"GET /api/runs HTTP/1.1\r\n", HOST + SURE + b"\r\n"
    yield b"GET http://evil.test/api/runs HTTP/1.1\r\n" + end
    yield b"GET http://localhost/api/runs HTTP/1.1\r\nHost: evil.test\r\n" + SURE + b"\r\n"
    for line in (b"CONNECT localhost:80", b"get /api/runs", b"GET /api/runs/a b"):
        yield line + b" HTTP/1.1\r\n" + end
    yield b"GET /api/runs HTTP/2.0\r\n" + end
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64
    yield b"\r\n" * 20_000
    yield b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n" + end
    yield get + b"".join(b"X-%d: y\r\n" % number for number in range(200)) + end
    for host in (b"Host : localhost", b"Host: localhost\r\n .evil.test", b"Host: localhost\x00"):
        yield get + host + b"\r\n" + SURE + b"\r\n"
    yield get + HOST + b"Authorization: Bearer\r\n " + TOKEN.encode() + b"x\r\n\r\n"
    for length, body in (
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
        (b"Content-Length: 2\r\nContent-Length: 3", b"{} "),
        (b"Content-Length: -2", b"{}"),
        (b"Transfer-Encoding: gzip", b"{}"),
        (b"Transfer-Encoding: chunked, gzip", b"2\r\n{}\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"-2\r\n{}\r\n0\r\n\r\n"),
    ):
        yield POST + HOST + SURE + length + b"\r\n\r\n" + body


def test_no_bytes_are_answered_that_should_not_be(server: Served) -> None:
    raw = list(raw_requests())
    server.views.asked.clear()
    answers = [server.send(data) for data in raw]
    for data, answer in zip(raw, answers, strict=True):
        assert SECRET.encode() not in answer, data[:200]
        assert not answer or answer.split(b" ", 2)[1].startswith(b"4"), (data[:200], answer[:200])
    assert len(raw) - answers.count(b"") >= 20
    assert server.views.asked == []
    for good in (GOOD, GOOD.replace(b"HTTP/1.1", b"HTTP/1.0")):
        answer = server.send(good)
        assert answer.startswith(b"HTTP/1.1 200")
        assert SECRET.encode() in answer
        head = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head)}
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


def closed(client: socket.socket, within: float) -> bool:
    """Does the server close the connection?"""
    client.settimeout(within)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_half_a_request_is_not_waited_for(server: Served) -> None:
    """Nor one that comes byte by byte, nor the next after an answer."""
    for begun in (b"", b"GET /", GOOD[:-2]):
        with server.connect() as client:
            client.sendall(begun)
            assert not closed(client, 0.05)
            assert closed(client, 5)
    with server.connect() as client:
        client.sendall(request("GET", "/api/runs", Connection=""))
        assert heard(client).startswith(b"HTTP/1.1 200")  # until it is closed
    with server.connect() as client:
        begun_at = time.monotonic()
        with suppress(OSError):
            for byte in GOOD[:-4] * 4:
                client.sendall(bytes([byte]))
                if closed(client, 0.05):
                    break
        assert 0.2 < time.monotonic() - begun_at < 5


def descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_who_asks_at_once_is_answered_beside_many_who_hang(server: Served) -> None:
    """Those go that hang, and leave nothing open; and nobody has to knock twice while the server
    does something else.
    """
    everybody = threading.Event()
    with ExitStack() as stack:
        server.get()
        before = descriptors()
        server.server.servers[0].get_loop().call_soon_threadsafe(everybody.wait)
        try:
            hanging = [stack.enter_context(server.connect()) for _ in range(300)]
        finally:
            everybody.set()
        for client in hanging[::2]:
            client.sendall(b"GET /api")
        begun = time.monotonic()
        assert server.get().startswith(b"HTTP/1.1 200")
        assert time.monotonic() - begun < 2
        assert closed(hanging[0], 5)
        until(lambda: len(server.server.server_state.connections) <= 8)
    until(lambda: descriptors() <= before)


def test_a_reader_that_does_not_read_is_given_up(server: Served) -> None:
    server.views.endless = True
    with server.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        server.views.asked.clear()
        client.sendall(COSTS)
        until(lambda: server.views.streaming)
        until(lambda: not server.views.streaming)
        assert server.get().startswith(b"HTTP/1.1 200")
    server.views.endless = False


def test_a_unix_socket_is_its_owners_alone_and_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "hopscope.sock"
    with served(socket=path) as running:
        assert path.stat().st_mode & 0o777 == 0o600
        assert SECRET.encode() in running.get()
        assert b" 403 " in running.get(Host="evil.test")
        assert b" 401 " in running.get(Authorization="")
    assert not path.exists()


LIGHT = [
    request("GET", "/api/runs"),
    request("GET", f"/api/runs/{RUN}"),
    request("GET", f"/api/runs/{RUN}/arrays/losses"),
    request("POST", f"/api/runs/{RUN}/example", b"{}"),
]
STORY = request("GET", f"/api/runs/{RUN}/arrays/contents?step=3")


def test_work_stops_when_its_client_has_left_and_holds_up_nothing_lighter() -> None:
    """Neither the light, nor a click beside what is measured of a whole run."""
    views = StandIn()
    views.slow, views.endless = 30, True
    with served(views) as running:
        for asked, busy in ((HEAVY, lambda: views.working), (COSTS, lambda: views.streaming)):
            with running.connect() as client:
                client.sendall(asked)
                until(busy)
                for light in LIGHT:
                    assert SECRET.encode() in running.send(light), light
                assert busy()
            until(lambda busy=busy: not busy(), 2)
        with running.connect() as first, running.connect() as second:
            first.sendall(STORY)
            until(lambda: views.working == 1)
            second.sendall(HEAVY)
            until(lambda: views.working == 2, 2)
        until(lambda: not views.working, 2)
    assert views.stopped == 3


def test_the_end_stops_work_and_streams() -> None:
    views = StandIn()
    views.slow = 30
    begun = time.monotonic()
    with served(views) as running:
        clients = [running.connect() for _ in range(2)]
        for client, data in zip(clients, (HEAVY, COSTS), strict=True):
            client.sendall(data)
        until(lambda: views.working)
    assert time.monotonic() - begun < 8
    for client in clients:
        client.close()
