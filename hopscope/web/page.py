"""The files of the page, listed once from its HTML, so that no request can name another file."""

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
"""Content types by the ending of a file's name."""
NAMED = re.compile(r'(?:href|src)="([\w.-]+)"')


def page_files() -> Mapping[str, tuple[str, Callable[[], bytes]]]:
    """Return the content type and the reader of every file of the page, by its URL path.

    The modules are joined into one script; otherwise a browser would find and load them one by one.
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
