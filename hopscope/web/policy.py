"""The policy for requests: each guard checks one property, and refuses with a constant line.

    size      headers are few and short
    host      the Host header names this server (prevents DNS rebinding)
    upgrade   plain HTTP only: no WebSocket, no h2c
    site      the request is not from another site, by the browser's fetch metadata
    origin    the request is not from a page of another origin
    token     the request has the token. The page itself is public, because it holds no data; the
              route that exchanges the URL's word for the token checks that word instead
    path      a path has only letters, digits, `.-_~` and encoded spaces, and no part of dots only
    body      the body is JSON, with exactly one header for its length

The first guard that refuses decides the answer, which repeats nothing from the request.
"""

import hmac
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from hopscope.errors import HopscopeError
from hopscope.web.address import Origin

MOST_HEADERS = 100
HEADER_BYTES = 16 * 1024
API = "/api"
EXCHANGE = f"{API}/token"
WITHOUT_KEY = (
    "no token, or a wrong one (an address opens one tab, within 10 minutes): open the newest "
    "address that hopscope printed"
)
PATH = re.compile(rb"/(?:(?:[\w.~-]|%20)+(?:/(?:[\w.~-]|%20)+)*)?", re.ASCII)
DOTS = re.compile(rb"/\.+(?:/|$)")


class Refused(HopscopeError):
    """A refused request; the text is one line for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class RequestHead:
    """The parts of a request that the guards check."""

    method: str
    raw_path: bytes
    headers: Sequence[tuple[bytes, bytes]]
    version: str = "1.1"

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> Self:
        """The request of an ASGI scope."""
        headers = tuple(scope["headers"])
        return cls(scope["method"], scope["raw_path"], headers, scope["http_version"])

    def all(self, name: bytes) -> list[bytes]:
        """Return the values of all headers of this name (in lower case, as in ASGI)."""
        return [value for key, value in self.headers if key == name]

    def one(self, name: bytes) -> str | None:
        """Return the value of a header that occurs exactly once; None otherwise."""
        found = self.all(name)
        return found[0].decode("latin-1") if len(found) == 1 else None

    @property
    def is_visit(self) -> bool:
        """Whether the request is a navigation to the page itself, by a link or an opened file.

        It may come from any site, because it carries no data.
        """
        way = (self.one(b"sec-fetch-mode"), self.one(b"sec-fetch-dest"))
        return self.method == "GET" and self.raw_path == b"/" and way == ("navigate", "document")


@dataclass(frozen=True)
class Policy:
    """Decides which requests are answered: those that have the token and name this server."""

    token: str = field(repr=False)
    trusted: tuple[Origin, ...] = ()
    """Trusted origins besides those of this machine (at any port, because ports are forwarded)."""
    public: Collection[str] = ()
    """Paths without data: the files of the page."""
    guards: "Mapping[str, Guard]" = field(default_factory=lambda: GUARDS)

    def check(self, asked: RequestHead) -> None:
        """Raise Refused if a guard refuses the request."""
        for guard in self.guards.values():
            guard(self, asked)

    def origins(self, asked: RequestHead) -> list[Origin]:
        """Return the origins whose pages may send requests to this request's `Host`."""
        host = asked.one(b"host") or ""
        own = Origin.at("http", host)
        trusted = [each for each in self.trusted if Origin.at(each.scheme, host) == each]
        return [own, *trusted] if own is not None and own.is_loopback else trusted


Guard = Callable[[Policy, RequestHead], None]


def size(_: Policy, asked: RequestHead) -> None:
    """Refuse long or many headers."""
    total = sum(len(name) + len(value) for name, value in asked.headers)
    if len(asked.headers) > MOST_HEADERS or total + len(asked.raw_path) > HEADER_BYTES:
        raise Refused(431, "the headers are too long: expected at most 16 kB, and 100 of them")


def host(policy: Policy, asked: RequestHead) -> None:
    """Refuse requests whose Host header is missing (also in HTTP/1.0) or names another server."""
    if asked.one(b"host") is None:
        raise Refused(400, "expected one Host header")
    if not policy.origins(asked):
        raise Refused(403, "the Host header names another server: open the URL that was printed")


def upgrade(_: Policy, asked: RequestHead) -> None:
    """Refuse anything but plain HTTP."""
    if asked.version not in ("1.0", "1.1") or asked.all(b"upgrade") or asked.all(b"http2-settings"):
        raise Refused(400, "expected plain HTTP/1.1, without an Upgrade header")


def site(_: Policy, asked: RequestHead) -> None:
    """Refuse requests that the browser marks as sent by another site."""
    known = asked.all(b"sec-fetch-site")
    if known and asked.one(b"sec-fetch-site") not in ("same-origin", "none") and not asked.is_visit:
        raise Refused(403, "another site asks: open the URL that was printed")


def origin(policy: Policy, asked: RequestHead) -> None:
    """Refuse requests from pages of another origin."""
    if asked.all(b"origin"):
        found = Origin.read(asked.one(b"origin") or "")
        if found is None or found not in policy.origins(asked):
            raise Refused(403, "a page of another origin asks: open the URL that was printed")


def token(policy: Policy, asked: RequestHead) -> None:
    """Refuse requests without the token, except for public paths and the exchange."""
    if asked.raw_path.decode("latin-1") in (*policy.public, EXCHANGE):
        return
    given, wanted = asked.all(b"authorization"), f"Bearer {policy.token}".encode()
    if len(given) != 1 or not hmac.compare_digest(given[0], wanted):
        raise Refused(401, WITHOUT_KEY)


def path(_: Policy, asked: RequestHead) -> None:
    """Refuse paths with other characters, or with a part of dots only (such as `..`)."""
    if not PATH.fullmatch(asked.raw_path) or DOTS.search(asked.raw_path):
        raise Refused(404, "no such path")


def body(_: Policy, asked: RequestHead) -> None:
    """Refuse bodies that are not JSON (HTML forms cannot send it) or have an ambiguous length."""
    lengths, coding = asked.all(b"content-length"), asked.all(b"transfer-encoding")
    if len(lengths) + len(coding) > 1 or not all(each.isdigit() for each in lengths):
        raise Refused(400, "expected one Content-Length, or one Transfer-Encoding")
    if asked.all(b"content-encoding"):
        raise Refused(415, "expected a body without a Content-Encoding")
    kind = (asked.one(b"content-type") or "").lower().replace(" ", "")
    if asked.method != "GET" and kind not in ("application/json", "application/json;charset=utf-8"):
        raise Refused(415, "expected one Content-Type: application/json")


GUARDS: Mapping[str, Guard] = {
    guard.__name__: guard for guard in (size, host, upgrade, site, origin, token, path, body)
}
