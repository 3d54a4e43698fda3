"""The server's address and its accepted names, checked before a port opens.

Every request of a browser names the server (`Host`) and the page that sends it (`Origin`). Both are
parsed here by their grammar: a name that only begins or ends like one of ours (`127.evil.test`,
`localhost.evil.test`) is not accepted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, ip_address
from pathlib import Path
from typing import Self

from hopscope.configs.config import shortened
from hopscope.errors import ConfigError

LOOPBACK = IPv4Network("127.0.0.0/8")
"""Addresses of this machine that no other machine can reach."""
PORTS = {"http": 80, "https": 443}
"""Default ports by scheme."""
HOST = re.compile(r"(?P<name>[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
HERE = "127.0.0.1"
PORT = 8384
"""The first port to try; also the local port in the ssh command that forwards a Unix socket."""


@dataclass(frozen=True)
class Origin:
    """The origin of a page, such as `https://lab.example:8443`; the port is never None."""

    scheme: str
    name: str
    port: int

    @classmethod
    def at(cls, scheme: str, host: str) -> Self | None:
        """Return the origin of the pages of a server by its `Host` header, such as
        `localhost:8384` or `[::1]`; None if the header has another form.
        """
        found = HOST.fullmatch(host.lower()) if host.isascii() else None
        if found is None:
            return None
        port = int(found["port"] or PORTS[scheme])
        return cls(scheme, found["name"], port) if 1 <= port <= 65535 else None

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse an origin as browsers write it; return None for any other text."""
        scheme, _, host = text.partition("://")
        found = cls.at(scheme, host) if scheme in PORTS else None
        return found if str(found) == text else None

    @property
    def is_loopback(self) -> bool:
        """Whether the name is a loopback address or localhost."""
        try:
            if self.name.startswith("["):
                return IPv6Address(self.name[1:-1]) == IPv6Address("::1")
            return self.name == "localhost" or IPv4Address(self.name) in LOOPBACK
        except AddressValueError:
            return False

    def __str__(self) -> str:
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.name}{port}"


@dataclass(frozen=True)
class Address:
    """The address at which the server listens: a host and port, or a Unix socket."""

    host: str = HERE
    port: int | None = None
    """The port; None is the first free one."""
    socket: Path | None = None

    @property
    def name(self) -> str:
        """The host as a browser writes it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def url(self) -> str:
        """The URL for a browser on this machine, or on the one to which a socket is forwarded."""
        return f"http://{self.name}:{self.port or PORT}/"


def decided(
    host: str, port: int | None, socket: Path | None, trusted: Sequence[str]
) -> tuple[Address, tuple[Origin, ...]]:
    """Return the address to listen at and the trusted origins.

    Raises ConfigError for unsafe or contradictory flags, before any port is open.
    """
    origins = tuple(map(_trusted, trusted))
    if port is not None and not 1 <= port <= 65535:
        raise ConfigError(f"--port is {port}; expected 1 to 65,535")
    if socket is not None:
        if host != HERE or port is not None:
            raise ConfigError("--socket needs neither --host nor --port; expected one or the other")
        return Address(socket=socket), origins
    found = _address(host)
    if found.is_unspecified and not origins:
        raise ConfigError(
            f"--host {host} is every address of this machine; expected --trusted-origin "
            "http://NAME:PORT with it, the URL under which browsers will ask"
        )
    return Address(str(found), port), origins


def names_of(address: Address, trusted: Sequence[Origin]) -> tuple[Origin, ...]:
    """Return all trusted origins: those given, and the address if it is a specific one."""
    if address.socket is not None or ip_address(address.host).is_unspecified:
        return tuple(trusted)
    return (*trusted, Origin("http", address.name, address.port or PORTS["http"]))


def _address(host: str) -> IPv4Address | IPv6Address:
    try:
        found = ip_address(HERE if host == "localhost" else host)
    except ValueError:
        raise ConfigError(
            f"--host is {shortened(repr(host))}; expected an address such as 127.0.0.1 or ::1"
        ) from None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _trusted(text: str) -> Origin:
    found = Origin.read(text)
    if found is None:
        raise ConfigError(
            f"--trusted-origin is {shortened(repr(text))}; expected the URL under which browsers "
            "ask, without a path and in small letters: https://lab.example or "
            "http://10.1.2.3:8384"
        )
    return found
