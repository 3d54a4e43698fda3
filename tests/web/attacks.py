"""The attacks: requests that must not be answered, each made from one that is.

Every group is named for the guard that has to refuse it, and says with which status.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from asking import HOST, TOKEN, Ask, made
from standin import RUN

from hopscope.web.app import Route

METHODS = (
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW",
)  # fmt: skip
GOOD = f"Bearer {TOKEN}".encode()
TOKENS: tuple[tuple[bytes, ...], ...] = (
    (), (b"",), (b"Bearer",), (b"Bearer ",), (b"Bearer nothing",), (GOOD + b"x",), (GOOD[:-1],),
    (GOOD.lower(),), (GOOD.upper(),), (b"bearer" + GOOD[6:],), (b"Basic " + TOKEN.encode(),),
    (TOKEN.encode(),), (GOOD, GOOD), (GOOD, b"Bearer nothing"), (GOOD + b"\xff",),
    (GOOD + b", " + GOOD,), (b" " + GOOD,), ("Bearer ключ".encode(),),
)  # fmt: skip
HOSTS: tuple[tuple[bytes, ...], ...] = (
    (), (b"",), (HOST, HOST), (HOST, b"evil.test"), (b"evil.test",), (b"evil.test:8384",),
    (b"localhost.evil.test",), (b"localhost.evil.test:8384",), (b"127.evil.test",),
    (b"10.evil.test",), (b"127.0.0.1.nip.test",), (b"127.0.0.1.evil.test:8384",),
    (b"localhost@evil.test",), (b"evil.test@localhost",), (b"evil.test#localhost",),
    (b"localhost.",), (b"127.0.0.1.",), (b"[::ffff:127.0.0.1]",), (b"0.0.0.0",), (b"[::]",),
    (b"2130706433",), (b"127.1",), (b"127.0.1",), (b"0x7f.1",), (b"0177.0.0.1",), (b"127.0.0.01",),
    (b"localhost\t",), (b" localhost",), (b"localhost,evil.test",), (b"localhost%00.evil.test",),
    (b"%6cocalhost",), ("localhost\u3002evil.test".encode(),), (b"\xc7\xbf.test",),
    ("①27.0.0.1".encode(),), (b"localhost:",), (b"localhost:0",), (b"localhost:99999",),
    (b"localhost:8384x",), (b"localhost:-1",), (b"localhost\n",), (b"localhost:8384\n",),
    (b"http://localhost",), (b"localhost/",), (b"::1",), (b"[::1",), (b"[::1%25lo]",), (b"*",),
    (b"LAB.evil.test",), (b"localhost:8384:8384",), (b"126.255.255.255",), (b"128.0.0.1",),
)  # fmt: skip
FORWARDED = (
    (b"x-forwarded-host", HOST), (b"forwarded", b"host=localhost"), (b"x-host", HOST),
    (b"x-original-host", HOST), (b"x-forwarded-for", b"127.0.0.1"),
)  # fmt: skip
ORIGINS: tuple[tuple[bytes, ...], ...] = (
    (b"null",), (b"",), (b"http://evil.test",), (b"https://127.0.0.1:8384",),
    (b"http://127.0.0.1:8385",), (b"http://127.0.0.1",), (b"http://localhost:8384",),
    (b"http://evil@127.0.0.1:8384",), (b"http://127.0.0.1:8384/",), (b"http://127.0.0.1:8384/x",),
    (b"http://127.0.0.1:8384.evil.test",), (b"http://127.0.0.1:83840",), (b"http://27.0.0.1:8384",),
    (b"http://127.0.0.1:8384", b"http://127.0.0.1:8384"), (b"http://127.0.0.1:8384, null",),
    (b"HTTP://127.0.0.1:8384",), (b"127.0.0.1:8384",), (b"//127.0.0.1:8384",), (b"file://",),
    (b"chrome-extension://abc",), (b"http://127.0.0.1:8384\n",), (b"http://\xff",),
)  # fmt: skip
SITES: tuple[tuple[tuple[bytes, bytes], ...], ...] = (
    ((b"sec-fetch-site", b"cross-site"),),
    ((b"sec-fetch-site", b"same-site"),),
    ((b"sec-fetch-site", b""),),
    ((b"sec-fetch-site", b"same-origin, cross-site"),),
    ((b"sec-fetch-site", b"same-origin"), (b"sec-fetch-site", b"same-origin")),
    ((b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", b"no-cors")),
    ((b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", b"navigate"),
     (b"sec-fetch-dest", b"iframe")),
    ((b"sec-fetch-site", b"same-site"), (b"sec-fetch-mode", b"navigate"),
     (b"sec-fetch-dest", b"embed")),
)  # fmt: skip
UPGRADES: tuple[tuple[tuple[bytes, bytes], ...], ...] = (
    ((b"upgrade", b"websocket"), (b"connection", b"Upgrade"), (b"sec-websocket-version", b"13"),
     (b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ==")),
    ((b"upgrade", b"WebSocket"), (b"origin", b"http://127.0.0.1:8384")),
    ((b"upgrade", b"h2c"), (b"connection", b"Upgrade, HTTP2-Settings"), (b"http2-settings", b"AA")),
    ((b"http2-settings", b"AAMAAABkAAQAAP__"),),
    ((b"upgrade", b""),),
)  # fmt: skip
SIZES: tuple[tuple[tuple[bytes, bytes], ...], ...] = (
    tuple((b"x-%d" % number, b"") for number in range(101)),
    ((b"x-long", b"x" * 16 * 1024),),
    ((b"x" * 16 * 1024, b""),),
    ((b"cookie", b"a=b; " * 4_000),),
)
PATHS = (
    b"", b"/api/runs/a b", b"/api/runs/\xff", b"/api/runs\n",
    *br"""
    /api/runs/.. /api/runs/. /api/runs/%2e%2e /api/runs/%2e%2e/runs /api/../api/runs /.. /. /%2e%2e/
    /api/runs/..%2f..%2fetc%2fpasswd /api/runs/%2e%2e%2f%2e%2e%2fetc /api/runs/..%5c..%5cx
    /api/runs/%252e%252e%252fetc /api/runs/..;/x /api/runs/%c0%ae%c0%ae/x /api/runs/x%00
    /api/runs/x%00.html //etc/passwd /api//runs /api/runs/ /api%2fruns %2fapi/runs /api/runs/C:%5cx
    /api/runs/C:/x /api/runs/~root/.. /api/runs/%0a /api/runs%0a /api/runs/%0d%0aSet-Cookie:x=1
    /api/runs/%e2%80%ae /api/runs/gallery/../.. /api/runs/* /api/runs/%2a /api/runs/'or'1'='1
    /api/runs? /api/runs/{id} /api/runs/$(id) /api/runs/%7e /%61pi/runs /...// /index.html/
    /index.html%00 /index.html%20/.. /%69ndex.html /./index.html /static/../index.html /\index.html
    \ * http://evil.test/api/runs http://127.0.0.1:8384/api/runs evil.test:443 /api/runs#x
    /api/runs/gallery-demo/views/.. /api/runs/gallery-demo/arrays/..%2f..
    /api/runs/gallery-demo/arrays/%2fetc%2fpasswd /api/runs/.../views
    """.split(),
)  # fmt: skip
KINDS: tuple[tuple[bytes, ...], ...] = (
    (), (b"",), (b"text/plain",), (b"application/x-www-form-urlencoded",),
    (b"multipart/form-data; boundary=x",), (b"application/json", b"application/json"),
    (b"text/plain; application/json",), (b"application/jsonx",),
    (b"application/json; charset=utf-7",), (b"application/json, text/plain",),
    (b"text/json",), (b"application/csp-report",),
)  # fmt: skip
LENGTHS: tuple[tuple[tuple[bytes, bytes], ...], ...] = (
    ((b"content-length", b"2"), (b"content-length", b"2")),
    ((b"content-length", b"2"), (b"transfer-encoding", b"chunked")),
    ((b"content-length", b"-1"),),
    ((b"content-length", b"+2"),),
    ((b"content-length", b"2, 2"),),
    ((b"content-length", b"0x2"),),
    ((b"content-length", "\u00b2".encode("latin-1")),),
    ((b"content-length", b""),),
    ((b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"gzip")),
)


@dataclass(frozen=True)
class Group:
    """Attacks that one guard refuses; those by another method, every route."""

    guard: str
    statuses: tuple[int, ...]
    asks: Callable[[list[Ask]], Iterator[Ask]]


def routed() -> list[Route]:
    """The routes of the app, and the page."""
    explorer = made()
    explorer.end()
    return [*explorer.routes, Route("GET", "/", ())]


ROUTED = routed()


def of_group(name: str) -> list[Ask]:
    """The attacks of a group; the page itself is public, and shown without a token."""
    asks = list(GROUPS[name].asks(good(ROUTED)))
    return asks if name != "token" else [ask for ask in asks if ask.path != b"/"]


def good(routes: list[Route]) -> list[Ask]:
    """A request of each route that would be answered, as far as its guards are concerned."""
    found = []
    for route in routes:
        path = route.path.replace("{id}", RUN).replace("{name}", "losses")
        found.append(Ask(route.method, path.encode()))
    return found


def everywhere(asks: list[Ask]) -> Iterator[Ask]:
    """Every route, and paths that lead nowhere, by every method."""
    paths = dict.fromkeys([*(ask.path for ask in asks), b"/api", b"/api/nothing", b"/nothing"])
    for path in paths:
        yield from (Ask(method, path) for method in METHODS)


def hosts(asks: list[Ask]) -> Iterator[Ask]:
    for ask in everywhere(asks):
        yield from (ask.but(host=host) for host in HOSTS)
        yield ask.but(host=(), version="1.0")
        yield from (ask.but(host=(b"evil.test",), more=(header,)) for header in FORWARDED)


def tokens(asks: list[Ask]) -> Iterator[Ask]:
    for ask in everywhere(asks):
        yield from (ask.but(token=token) for token in TOKENS)
        yield ask.but(token=(), query=b"token=" + TOKEN.encode())
        yield ask.but(token=(), more=((b"cookie", b"token=" + TOKEN.encode()),))
        yield ask.but(token=(), more=((b"x-authorization", GOOD), (b"proxy-authorization", GOOD)))


def with_headers(
    cases: tuple[tuple[tuple[bytes, bytes], ...], ...],
) -> Callable[..., Iterator[Ask]]:
    def asks(known: list[Ask]) -> Iterator[Ask]:
        for ask in everywhere(known):
            yield from (ask.but(more=more) for more in cases)

    return asks


def upgrades(asks: list[Ask]) -> Iterator[Ask]:
    yield from with_headers(UPGRADES)(asks)
    for ask in everywhere(asks):
        yield from (ask.but(version=version) for version in ("0.9", "2.0", "2", "3"))


def paths(_: list[Ask]) -> Iterator[Ask]:
    for path in PATHS:
        yield from (Ask(method, path) for method in METHODS)


def methods(asks: list[Ask]) -> Iterator[Ask]:
    ways = {(ask.method, ask.path) for ask in asks}
    for ask in everywhere(asks):
        if (ask.method, ask.path) not in ways and ask.method not in ("GET", "POST", "PUT"):
            yield ask


def bodies(asks: list[Ask]) -> Iterator[Ask]:
    for ask in (each for each in asks if each.method != "GET"):
        yield from (ask.but(kind=kind) for kind in KINDS)
        yield from (ask.but(more=more) for more in LENGTHS)
        yield ask.but(more=((b"content-encoding", b"gzip"),))
        yield ask.but(more=((b"content-encoding", b"identity"),))


ORIGIN_HEADERS = tuple(tuple((b"origin", each) for each in case) for case in ORIGINS)
GROUPS: Mapping[str, Group] = {
    group.guard: group
    for group in (
        Group("size", (431,), with_headers(SIZES)),
        Group("host", (400, 403), hosts),
        Group("upgrade", (400,), upgrades),
        Group("site", (403,), with_headers(SITES)),
        Group("origin", (403,), with_headers(ORIGIN_HEADERS)),
        Group("token", (401,), tokens),
        Group("path", (404,), paths),
        Group("method", (404, 405), methods),
        Group("body", (400, 415), bodies),
    )
}
