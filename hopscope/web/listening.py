"""Opens what the server listens at: a port that is free, or a Unix socket of its owner alone."""

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

from hopscope.errors import ConfigError
from hopscope.web.address import PORT, Address

NEXT = 100
"""Ports that are tried, from the first on."""
WAITING = 1024
"""Connections that may wait to be accepted."""


@contextmanager
def listening(address: Address) -> Iterator[tuple[socket.socket, Address]]:
    """An open socket at this address, and the address with its port."""
    if address.socket is not None:
        with _unix(address.socket.absolute()) as opened:
            yield opened, address
    else:
        with _free(address) as opened:
            yield opened, replace(address, port=opened.getsockname()[1])


def _free(address: Address) -> socket.socket:
    """The port that is asked for, or the first free one."""
    for port in range(PORT, PORT + NEXT):
        try:
            return _bound(address.host, address.port or port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or address.port is not None:
                raise ConfigError(_trouble(error, address)) from error
    return _bound(address.host, 0)


def _bound(host: str, port: int) -> socket.socket:
    six = ip_address(host).version == 6
    opened = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
    try:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else answers wait 40 ms
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # right after one that ended
        if six:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind((host, port))
        opened.listen(WAITING)
    except OSError:
        opened.close()
        raise
    return opened


def _trouble(error: OSError, address: Address) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--port {address.port} is in use: choose another, or leave it out for a free one"
    if error.errno == errno.EACCES:
        return f"--port {address.port} is not yours to open: choose one from 1,024 on"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {address.host} is no address of this machine: `ip address` lists them"
    return f"cannot listen at {address.host}: {error.strerror}"


@contextmanager
def _unix(path: Path) -> Iterator[socket.socket]:
    """A socket that only its owner can open; it is gone afterwards."""
    _clear(path)
    opened = socket.socket(socket.AF_UNIX)
    with opened:
        mask = os.umask(0o177)  # there is no moment at which others can open it
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
    """The system's reason; Python's own for a path that is too long."""
    return error.strerror or str(error)


def _clear(path: Path) -> None:
    """Remove the socket of a server that was killed; whatever else is there stays."""
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
