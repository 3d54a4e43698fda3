"""The page's files, which are listed once."""

from pathlib import Path

from asking import Ask, asked
from starlette.routing import Router

from hopscope.web import shell


def test_every_file_of_the_page_is_served_as_what_it_is() -> None:
    found = shell.contents()
    answers = asked(*(Ask(path=path.encode(), token=()) for path in found))
    assert {"/", "/index.html", "/main.js", "/page.css"} <= set(found)
    for (path, read), answer in zip(found.items(), answers, strict=True):
        assert answer.body == read()
        kind = shell.TYPES[Path(path).suffix or ".html"]
        assert answer.headers["content-type"].partition(";")[0] == kind


def test_what_is_not_listed_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("<!doctype html>")
    (tmp_path / "static" / "notes.txt").write_text("mine")
    (tmp_path / "secret.html").write_text("mine")
    routes = shell.routes(tmp_path / "static")
    assert sorted(route.path for route in Router(routes).routes) == ["/", "/index.html", "/page.js"]
