"""The page itself: the files of `static/`, listed once, so that no request names a file."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hopscope.store.files import read_bytes
from hopscope.web.joined import joined

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
"""What is served, by the end of its name."""


def contents(folder: Path = STATIC) -> Mapping[str, Callable[[], bytes]]:
    """What gives the content of every file of the page, by the path at which a browser asks for it.
    Its modules can be asked for alone, too; the page takes them joined, since a browser would hear
    of each from another, and ask for one after the other.
    """
    found = {
        f"/{path.relative_to(folder).as_posix()}": partial(read_bytes, path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in TYPES and path.is_file()
    }
    script = cache(lambda: joined("main.js", (lambda name: (folder / name).read_text())).encode())
    return {"/": partial(read_bytes, folder / "index.html"), "/page.js": script, **found}


def routes(folder: Path = STATIC) -> list[Route]:
    """A route for each of them."""
    return [
        Route(path, _serving(path, read), methods=["GET"])
        for path, read in contents(folder).items()
    ]


def _serving(path: str, read: Callable[[], bytes]) -> Callable[[Request], Response]:
    kind = TYPES[Path(path).suffix or ".html"]

    async def serve(_: Request) -> Response:
        return Response(read(), media_type=kind)

    return serve  # type: ignore[return-value]
