"""The page's files, which are listed once."""

import re
from pathlib import Path

from asking import Ask, ask_all, made
from starlette.routing import Router

from hopscope.web import shell


def test_every_file_of_the_page_is_served_as_what_it_is() -> None:
    found = shell.files()
    explorer = made()
    answers = ask_all(explorer.app, [Ask(path=path.encode(), token=()) for path in found])
    explorer.end()
    assert {"/", "/index.html", "/main.js", "/page.css"} <= set(found)
    for (_, file), answer in zip(found.items(), answers, strict=True):
        assert answer.body == file.read_bytes()
        assert answer.headers["content-type"].partition(";")[0] == shell.TYPES[file.suffix]


def test_what_is_not_listed_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("<!doctype html>")
    (tmp_path / "static" / "notes.txt").write_text("mine")
    (tmp_path / "secret.html").write_text("mine")
    routes = shell.routes(tmp_path / "static")
    assert sorted(route.path for route in Router(routes).routes) == ["/", "/index.html"]


def test_the_page_is_written_in_short_lines_and_short_files() -> None:
    """`prettier --print-width 110` writes the scripts so; the rest is for people to see to."""
    for file in sorted(shell.STATIC.glob("*.*s")):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 300, file.name
        assert {n for n, line in enumerate(lines, 1) if len(line) > 120} == set(), file.name


def test_each_colour_is_said_once() -> None:
    styles = "".join(file.read_text() for file in shell.STATIC.glob("*.css"))
    said = re.findall(r"(--[\w-]+): (?:light-dark\(|#)", styles)
    assert len(said) > 30
    assert len(said) == len(set(said))
