"""The page itself: the files of `static/`, listed once, so that no request names a file."""

from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hopscope.store.files import read_bytes

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


def files(folder: Path = STATIC) -> dict[str, Path]:
    """Every file of the page, by the path at which a browser asks for it."""
    found = {
        f"/{path.relative_to(folder).as_posix()}": path
        for path in sorted(folder.rglob("*"))
        if path.suffix in TYPES and path.is_file()
    }
    return {"/": folder / "index.html", **found}


def routes(folder: Path = STATIC) -> list[Route]:
    """A route for each of them."""
    return [Route(path, _serving(file), methods=["GET"]) for path, file in files(folder).items()]


def _serving(file: Path) -> Callable[[Request], Response]:
    kind = TYPES[file.suffix]

    async def serve(_: Request) -> Response:
        return Response(read_bytes(file), media_type=kind)

    return serve  # type: ignore[return-value]
