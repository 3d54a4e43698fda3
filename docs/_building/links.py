"""Every link within the site leads somewhere: to a file that was written, and to a place on it.

It is looked at when the pages are there; a link that leads nowhere is a warning, and so ends a
build with `-W`.
"""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken(site: Path) -> list[str]:
    """Links that lead nowhere, each with the page that it is on."""
    read = cache(lambda path: Page(path.read_text(encoding="utf-8")))
    found = []
    for path in sorted(site.rglob("*.html")):
        for link in sorted(read(path).links):
            its = urlsplit(link)
            if its.scheme or its.netloc:
                continue
            target = path.parent / unquote(its.path) if its.path else path
            place = unquote(its.fragment)
            if not target.is_file() or (
                place and target.suffix == ".html" and place not in read(target).places
            ):
                found.append(f"{path.relative_to(site)}: {link} leads nowhere")
    return found


def check(app: Any, error: Exception | None) -> None:
    from sphinx.util import logging

    if error is None and app.builder.format == "html":
        for line in broken(Path(app.outdir)):
            logging.getLogger(__name__).warning(line)


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
