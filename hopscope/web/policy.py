"""Which requests are answered: each guard looks at one thing, and refuses with a constant line.

    size      headers are few and short
    host      the browser means this server, and no name that was bent to it (DNS rebinding)
    upgrade   plain HTTP only: no WebSocket, no h2c
    site      no other site asks, as far as the browser says (fetch metadata)
    origin    no page of another origin asks
    token     whoever asks was given the URL; the page itself, which holds no data, is public, and
              where the URL's word is exchanged for the token, that word is asked for instead
    path      a path is letters, digits and `.-_~`, and needs no second look
    body      what is sent is JSON of a length that is told in one way

The first guard that refuses answers. Nothing of the request is repeated in the answer.
"""

import hmac
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from hopscope.errors import HopscopeError
from hopscope.web.address import Authority, Origin

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
    """A request is not answered; its text is one line for whoever asked."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class RequestHead:
    """A request, as far as the guards look at it."""

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
        """The values of all headers of this name (in small letters, as a server hands them on)."""
        return [value for key, value in self.headers if key == name]

    def one(self, name: bytes) -> str | None:
        """The value of a header that must be there once; None otherwise."""
        found = self.all(name)
        return found[0].decode("latin-1") if len(found) == 1 else None

    @property
    def is_visit(self) -> bool:
        """True if somebody goes to the page itself: followed a link, or opened a file that leads
        to it. That may come from anywhere, and brings nothing along.
        """
        way = (self.one(b"sec-fetch-mode"), self.one(b"sec-fetch-dest"))
        return self.method == "GET" and self.raw_path == b"/" and way == ("navigate", "document")


@dataclass(frozen=True)
class Policy:
    """Whose requests are answered: those that bring the token, and mean this server."""

    token: str = field(repr=False)
    trusted: tuple[Origin, ...] = ()
    """Origins that are trusted beside those of this machine (any port: it may be forwarded)."""
    public: Collection[str] = ()
    """Paths that hold no data: the page and what it is made of."""
    guards: "Mapping[str, Guard]" = field(default_factory=lambda: GUARDS)

    def check(self, asked: RequestHead) -> None:
        """Refuse the request, or let it pass."""
        for guard in self.guards.values():
            guard(self, asked)

    def origins(self, asked: RequestHead) -> list[Origin]:
        """The origins whose pages may ask at the host that this request names."""
        place = Authority.read(asked.one(b"host") or "")
        if place is None:
            return []
        own = [Origin.of("http", place)] if place.is_loopback else []
        return own + [origin for origin in self.trusted if origin.is_at(place)]


Guard = Callable[[Policy, RequestHead], None]


def size(_: Policy, asked: RequestHead) -> None:
    """Headers are few and short."""
    total = sum(len(name) + len(value) for name, value in asked.headers)
    if len(asked.headers) > MOST_HEADERS or total + len(asked.raw_path) > HEADER_BYTES:
        raise Refused(431, "the headers are too long: expected at most 16 kB, and 100 of them")


def host(policy: Policy, asked: RequestHead) -> None:
    """The browser means this server; HTTP/1.0 has to say so, too."""
    if asked.one(b"host") is None:
        raise Refused(400, "expected one Host header")
    if not policy.origins(asked):
        raise Refused(403, "the Host header names another server: open the URL that was printed")


def upgrade(_: Policy, asked: RequestHead) -> None:
    """Plain HTTP only."""
    if asked.version not in ("1.0", "1.1") or asked.all(b"upgrade") or asked.all(b"http2-settings"):
        raise Refused(400, "expected plain HTTP/1.1, without an Upgrade header")


def site(_: Policy, asked: RequestHead) -> None:
    """No other site asks, as far as the browser says."""
    known = asked.all(b"sec-fetch-site")
    if known and asked.one(b"sec-fetch-site") not in ("same-origin", "none") and not asked.is_visit:
        raise Refused(403, "another site asks: open the URL that was printed")


def origin(policy: Policy, asked: RequestHead) -> None:
    """No page of another origin asks."""
    if asked.all(b"origin"):
        found = Origin.read(asked.one(b"origin") or "")
        if found is None or found not in policy.origins(asked):
            raise Refused(403, "a page of another origin asks: open the URL that was printed")


def token(policy: Policy, asked: RequestHead) -> None:
    """Whoever asks was given the URL."""
    if asked.raw_path.decode("latin-1") in (*policy.public, EXCHANGE):
        return
    given, wanted = asked.all(b"authorization"), f"Bearer {policy.token}".encode()
    if len(given) != 1 or not hmac.compare_digest(given[0], wanted):
        raise Refused(401, WITHOUT_KEY)


def path(_: Policy, asked: RequestHead) -> None:
    """A path that can be read in one way only."""
    if not PATH.fullmatch(asked.raw_path) or DOTS.search(asked.raw_path):
        raise Refused(404, "there is nothing here")


def body(_: Policy, asked: RequestHead) -> None:
    """What is sent is JSON of a length that is told in one way, which no form can send."""
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
