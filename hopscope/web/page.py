"""The page itself: what its HTML names, listed once, so that no request names a file."""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from hopscope.store.files import read_bytes
from hopscope.web.joined import joined_script

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""What is served, by the end of its name."""
NAMED = re.compile(r'(?:href|src)="([\w.-]+)"')


def page_files() -> Mapping[str, tuple[str, Callable[[], bytes]]]:
    """The type of every file of the page, and what reads it, by the path at which a browser asks
    for it. Its modules come as one script: a browser would hear of each from another, and ask for
    one after the other.
    """
    index = STATIC / "index.html"
    files: dict[str, Callable[[], bytes]] = {
        name: partial(read_bytes, STATIC / name) for name in NAMED.findall(index.read_text())
    }
    files["page.js"] = cache(lambda: joined_script("main.js", static_text).encode())
    found = {f"/{name}": (TYPES[Path(name).suffix], read) for name, read in files.items()}
    return {"/": (TYPES[".html"], partial(read_bytes, index)), **found}


def static_text(name: str) -> str:
    """The text of a file of the page."""
    return (STATIC / name).read_text(encoding="utf-8")
