"""The server as a whole: sockets, clients that leave, its end."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path

from served import request, served
from standin import RUN, SECRET, StandIn

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


def test_work_and_streams_stop_when_their_client_has_left() -> None:
    views = StandIn()
    views.slow, views.endless = 30, True
    with served(views) as running:
        for asked, busy in ((HEAVY, lambda: views.working), (COSTS, lambda: views.streaming)):
            for _ in range(2):
                with running.connect() as client:
                    client.sendall(asked)
                    wait_until(busy)
                wait_until(lambda busy=busy: not busy(), 2)
    assert views.stopped == 2


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
