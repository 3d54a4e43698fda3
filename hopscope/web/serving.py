"""Run uvicorn at a free port, or at a Unix socket that only its owner can open.

uvicorn waits forever for the rest of a request, and for a client that does not read. Here a client
has ten seconds for either, or half a second when many are connected; then its connection is closed.
So slow clients cannot block others.
"""

import asyncio
import errno
import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn

from hopscope.errors import ConfigError
from hopscope.machine import allow_many_files
from hopscope.web.address import PORT, Address
from hopscope.web.app import Explorer

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE = 2
"""Seconds to send pending answers when the server ends."""
SWITCH = 0.0005
"""Python's switch interval in seconds: how soon a computing thread yields to the answering one."""
NEXT = 100
"""Number of ports to try."""
WAITING = 1024
"""Largest number of connections that wait to be accepted."""


@dataclass
class Patience:
    """Time limits for clients that do not send or read."""

    most: int = 64
    """With more connections than this, the limit is `moment`."""
    patience: float = 10.0
    """Seconds for a client to send a request, or to continue reading an answer."""
    moment: float = 0.5
    look: float = 0.5
    """Seconds between checks."""
    _since: dict[Any, tuple[object, float]] = field(default_factory=dict)
    """For each client, the event that the server waits for, and since when."""

    def end_waiting(self, connections: set[Any], now: float) -> None:
        """Close the connections that have exceeded the time limit."""
        before, self._since = self._since, {}
        allowed = self.moment if len(connections) > self.most else self.patience
        for each in list(connections):
            wanted = _wanted(each)
            kept, since = before.get(each, (None, now))
            since = since if kept == wanted else now
            if wanted is not None and now - since > allowed:
                each.transport.abort()
            else:
                self._since[each] = wanted, since


def _wanted(connection: Any) -> object:
    """Return the event that the server waits for: the next request or a read; None if neither."""
    cycle = connection.cycle
    if cycle is None or cycle.response_complete:
        return id(cycle)
    unread: int = connection.transport.get_write_buffer_size()
    return (unread,) if unread else None


class Server(uvicorn.Server):
    """Uvicorn without logs. It wakes twice a second to check slow clients (uvicorn wakes ten times
    a second to check whether to end).
    """

    def __init__(self, explorer: Explorer, patience: Patience | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                explorer,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,  # clients could forge them
                server_header=False,
                backlog=WAITING,
                timeout_graceful_shutdown=GRACE,
            )
        )
        self.explorer, self.patience = explorer, patience or Patience()

    async def main_loop(self) -> None:
        """Answer until Ctrl-C or SIGTERM."""
        loop = asyncio.get_running_loop()
        while not await self.on_tick(0):  # also updates the Date header of answers
            self.patience.end_waiting(self.server_state.connections, loop.time())
            await asyncio.sleep(self.patience.look)
        self.explorer.stop()  # before uvicorn waits for clients


def serve(explorer: Explorer, opened: socket.socket) -> None:
    """Answer at this socket until SIGINT, SIGTERM or SIGHUP, which end it without an error."""
    sys.setswitchinterval(SWITCH)
    allow_many_files()
    running = Server(explorer)

    def end(*_: object) -> None:
        running.should_exit = True

    before = {each: signal.signal(each, end) for each in ENDING}
    try:
        asyncio.run(running.serve([opened]))
    finally:
        explorer.end()
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def listening(address: Address) -> Iterator[tuple[socket.socket, Address]]:
    """Yield an open socket at this address, and the address with its port."""
    if address.socket is not None:
        with _unix(address.socket.absolute()) as opened:
            yield opened, address
    else:
        with _free(address) as opened:
            yield opened, replace(address, port=opened.getsockname()[1])


def _free(address: Address) -> socket.socket:
    """Return a socket at the requested port, or at the first free one."""
    for port in range(PORT, PORT + NEXT):
        try:
            return _bound(address.host, address.port or port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or address.port is not None:
                raise ConfigError(_trouble(error, address)) from error
    return _bound(address.host, 0)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    opened = socket.create_server((host, port), family=family, backlog=WAITING)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # avoids a delay of 40 ms
    return opened


def _trouble(error: OSError, address: Address) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--port {address.port} is in use: choose another, or leave it out for a free one"
    if error.errno == errno.EACCES:
        return f"--port {address.port} needs root rights: choose one from 1,024 on"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {address.host} is not an address of this machine: `ip address` lists them"
    return f"cannot listen at {address.host}: {os.strerror(error.errno or errno.EIO)}"


@contextmanager
def _unix(path: Path) -> Iterator[socket.socket]:
    """Yield a socket that only its owner can open; its file is removed after the block."""
    _clear(path)
    opened = socket.socket(socket.AF_UNIX)
    with opened:
        mask = os.umask(0o177)  # so that others can never open it
        try:
            opened.bind(str(path))
            opened.listen(WAITING)
            made = path.lstat()
        except OSError as error:
            raise ConfigError(f"cannot make the socket {path}: {_why(error)}") from error
        finally:
            os.umask(mask)
        try:
            yield opened
        finally:
            if os.path.lexists(path) and os.path.samestat(path.lstat(), made):
                path.unlink()


def _why(error: OSError) -> str:
    """Return the system's reason, or Python's (for a path that is too long)."""
    return error.strerror or str(error)


def _clear(path: Path) -> None:
    """Remove the socket of a server that was killed; raises ConfigError if it is anything else."""
    try:
        found = path.lstat()
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
        raise ConfigError(f"--socket {path} is there, and no socket of yours: choose another")
    with socket.socket(socket.AF_UNIX) as other:
        try:
            other.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"--socket {path} cannot be opened: {_why(error)}") from error
        else:
            raise ConfigError(f"--socket {path} is another server's, which is running")
