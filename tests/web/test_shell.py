"""The page's files, which are listed once."""

import re
from pathlib import Path

from asking import Ask, ask_all, made
from starlette.routing import Router

from hopscope.web import shell


def test_every_file_of_the_page_is_served_as_what_it_is() -> None:
    found = shell.contents()
    explorer = made()
    answers = ask_all(explorer.app, [Ask(path=path.encode(), token=()) for path in found])
    explorer.end()
    assert {"/", "/index.html", "/main.js", "/page.css"} <= set(found)
    for (path, read), answer in zip(found.items(), answers, strict=True):
        assert answer.body == read()
        kind = shell.TYPES[Path(path).suffix or ".html"]
        assert answer.headers["content-type"].partition(";")[0] == kind


def test_the_page_asks_for_one_script_and_for_nothing_that_is_not_there() -> None:
    page = shell.contents()["/"]().decode()
    named = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert [name for name in named if name.endswith(".js")] == ["page.js"]
    assert {f"/{name}" for name in named} <= set(shell.contents())
    script = shell.contents()["/page.js"]().decode()
    assert "modules['main.js'] =" in script
    assert "modules['engine.js'] =" not in script  # of saved pages alone


def test_what_is_not_listed_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("<!doctype html>")
    (tmp_path / "static" / "notes.txt").write_text("mine")
    (tmp_path / "secret.html").write_text("mine")
    routes = shell.routes(tmp_path / "static")
    assert sorted(route.path for route in Router(routes).routes) == ["/", "/index.html", "/page.js"]


def test_each_colour_is_said_once() -> None:
    styles = "".join(file.read_text() for file in shell.STATIC.glob("*.css"))
    said = re.findall(r"(--[\w-]+): (?:light-dark\(|#)", styles)
    assert len(said) > 30
    assert len(said) == len(set(said))
