"""Is a page whole?"""

from html.parser import HTMLParser


class Balance(HTMLParser):
    """Says whether every element that is opened is closed, and in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("br", "meta"):
            self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href" and tag == "a"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
