"""A server in a thread of its own, and clients that speak to it byte by byte."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asking import TOKEN, made
from standin import StandIn

from hopscope.web.address import Address
from hopscope.web.app import Explorer
from hopscope.web.serving import Patience, Server, listening

LONG = 10.0
"""Seconds after which a test gives up."""


@dataclass(frozen=True)
class Served:
    """A server that runs, and who answers behind it."""

    address: Address
    server: Server
    explorer: Explorer
    views: Any
    notes: list[str]

    @property
    def port(self) -> int:
        assert self.address.port is not None
        return self.address.port

    def connect(self) -> socket.socket:
        """A client's connection."""
        if self.address.socket is None:
            return socket.create_connection((self.address.host, self.port), timeout=LONG)
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(LONG)
        client.connect(str(self.address.socket))
        return client

    def send(self, data: bytes) -> bytes:
        """What is answered to these bytes, until the server closes the connection."""
        with self.connect() as client:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have heard enough
                client.sendall(data)
            return heard(client)

    def get(self, path: str = "/api/runs", **headers: str) -> bytes:
        return self.send(request("GET", path, **headers))


def heard(client: socket.socket) -> bytes:
    """All that is still to come."""
    found = b""
    with suppress(ConnectionResetError):
        while more := client.recv(65_536):
            found += more
    return found


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """A request that is answered; a header that is empty is left out."""
    usual = {
        "Host": "localhost",
        "Authorization": f"Bearer {TOKEN}",
        "Connection": "close",
        **({} if method == "GET" else {"Content-Type": "application/json"}),
        **({"Content-Length": str(len(body))} if body else {}),
    }
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in (usual | given).items() if value]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1") + body


@contextmanager
def served(
    views: Any = None, socket: Path | None = None, patience: Patience | None = None, **changed: Any
) -> Iterator[Served]:
    """A server of these views, until the end of the block."""
    views, notes = views or StandIn(), list[str]()
    with listening(Address(socket=socket)) as (opened, address):
        explorer = made(views, notes, **changed)
        running = Server(explorer, patience)
        thread = threading.Thread(target=lambda: asyncio.run(running.serve([opened])), daemon=True)
        thread.start()
        try:
            yield Served(address, running, explorer, views, notes)
        finally:
            running.should_exit = True
            thread.join(LONG)
            explorer.end()
            assert not thread.is_alive()
