"""The server as a whole: sockets, clients that leave, its end."""

import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from served import request, served
from standin import RUN, SECRET, StandIn

from hopscope.web.guard import Limits

HEAVY = request("POST", f"/api/runs/{RUN}/ablate", b"{}")
COSTS = request("POST", f"/api/runs/{RUN}/costs", b"{}")


def wait_until(happened: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_unix_socket_is_its_owners_alone_and_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "hopscope.sock"
    with served(socket=path) as running:
        assert path.stat().st_mode & 0o777 == 0o600
        assert SECRET.encode() in running.get()
        assert b" 403 " in running.get(Host="evil.test")
        assert b" 401 " in running.get(Authorization="")
    assert not path.exists()


def test_work_stops_when_its_client_has_left() -> None:
    views = StandIn()
    views.slow = 30
    with served(views) as running:
        for _ in range(3):
            client = running.connect()
            client.sendall(HEAVY)
            wait_until(lambda: views.working)
            client.close()
            wait_until(lambda: not views.working, 2)
    assert views.stopped == 3


def test_a_stream_stops_when_its_client_has_left() -> None:
    views = StandIn()
    views.endless = True
    with served(views) as running:
        with running.connect() as client:
            client.sendall(COSTS)
            assert client.recv(1_000).startswith(b"HTTP/1.1 200")
            wait_until(lambda: views.streaming)
        wait_until(lambda: not views.streaming)


LIGHT = [
    request("GET", "/api/runs"),
    request("GET", f"/api/runs/{RUN}"),
    request("GET", f"/api/runs/{RUN}/arrays/losses"),
    request("POST", f"/api/runs/{RUN}/example", b"{}"),
]


def test_what_is_light_is_answered_while_something_is_computed() -> None:
    views = StandIn()
    views.slow = 30
    with served(views) as running, running.connect() as client:
        client.sendall(HEAVY)
        wait_until(lambda: views.working)
        for light in LIGHT:
            assert SECRET.encode() in running.send(light), light
        assert views.working == 1


def test_no_client_has_to_knock_twice() -> None:
    """The system keeps them waiting while the server does something else."""
    everybody = threading.Event()
    with served() as running, ExitStack() as stack:
        running.get()
        running.server.servers[0].get_loop().call_soon_threadsafe(everybody.wait)
        try:
            for _ in range(300):
                stack.enter_context(running.connect())  # gives up after ten seconds
        finally:
            everybody.set()


def test_the_end_stops_work_and_streams() -> None:
    views = StandIn()
    views.slow = 30
    begun = time.monotonic()
    with served(views) as running:
        clients = [running.connect() for _ in range(2)]
        for client, data in zip(clients, (HEAVY, COSTS), strict=True):
            client.sendall(data)
        wait_until(lambda: views.working)
    assert time.monotonic() - begun < 8
    for client in clients:
        client.close()


def held() -> tuple[int, int]:
    """Descriptors and threads of this process."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def test_after_many_clients_everything_is_as_before() -> None:
    """Half requests, slow readers, heavy questions, clients that leave: nothing is left of them."""
    views = StandIn()
    views.slow = 0.005
    with served(views, limits=Limits(sending=0.2, waiting=4)) as running:
        running.get()
        before = held()
        for number in range(60):
            client = running.connect()
            client.sendall((HEAVY, COSTS, HEAVY[:-2], request("GET", "/"))[number % 4])
            if number % 3:
                client.settimeout(0.02)
                with suppress(TimeoutError):
                    client.recv(100)
            client.close()
        begun = time.monotonic()
        assert SECRET.encode() in running.get()
        assert time.monotonic() - begun < 1
        wait_until(lambda: not running.server.server_state.connections)
        wait_until(lambda: held() == before)
        assert running.notes == []
    assert views.most == 1


def test_only_a_server_that_may_write_has_a_way_to_keep() -> None:
    for read_only, status in ((True, b"404"), (False, b"200")):
        with served(read_only=read_only) as running:
            answer = running.send(request("PUT", f"/api/runs/{RUN}/views/mine", b"{}"))
        assert answer.split(b" ")[1] == status
