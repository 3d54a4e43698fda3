"""The token of a server, the file that may hold it, and the word that is exchanged for it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import TOKEN, Ask, ask_all, made

from hopscope.errors import ConfigError
from hopscope.web.token import FORM, LASTS, Once, token


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "token"
    monkeypatch.setenv("HOPSCOPE_TOKEN_FILE", str(path))
    return path


def test_a_file_keeps_it_for_its_owner_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one every start makes another."""
    first = token()
    assert place.read_text() == f"{first}\n"
    assert place.stat().st_mode & 0o777 == 0o600
    assert token() == first
    monkeypatch.delenv("HOPSCOPE_TOKEN_FILE")
    made = {first, *(token() for _ in range(10))}
    assert len(made) == 11
    assert all(len(each) == 43 and FORM.fullmatch(each) for each in made)


def written(path: Path, mode: int, text: str) -> None:
    path.write_text(text)
    path.chmod(mode)


OTHERS: tuple[tuple[Callable[[Path], object], str], ...] = (
    (lambda path: written(path, 0o644, "t" * 43), "can be read by others: chmod 600 "),
    (lambda path: written(path, 0o600, "secret"), "holds no token: expected 32 to 200 letters"),
    (lambda path: path.symlink_to("/etc/passwd"), "cannot be read: Too many levels of symbolic"),
    (lambda path: os.mkfifo(path, 0o600), "is not a regular file"),
    (lambda path: path.mkdir(0o700), "is not a regular file"),
    (lambda path: written(path.parent, 0o600, ""), "cannot be read: Not a directory"),
    (lambda _: None, "cannot be made: No such file or directory"),
)


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (prepare, text) in enumerate(OTHERS):
        path = tmp_path / str(number) / "token"
        if "No such" not in text and "Not a" not in text:
            path.parent.mkdir()
        monkeypatch.setenv("HOPSCOPE_TOKEN_FILE", str(path))
        prepare(path)
        with pytest.raises(ConfigError) as caught:
            token()
        assert text in str(caught.value)
        assert str(caught.value).startswith("$HOPSCOPE_TOKEN_FILE ")


def exchange(word: object, **changed: object) -> Ask:
    ask = Ask("POST", b"/api/token", token=(), body=json.dumps({"word": word}).encode())
    return ask.but(**changed)


def test_a_word_is_exchanged_once_and_in_time_and_the_next_is_told() -> None:
    told, now = list[str](), [0.0]
    once = Once(TOKEN, told.append, lambda: now[0])
    first = once.word
    app = made(once=once)
    wrong = [exchange(each) for each in (None, 1, "", TOKEN, first[:-1], f"{first}x", [first])]
    foreign = [
        exchange(first, host=(b"evil.test",)),
        exchange(first, more=((b"origin", b"http://evil.test"),)),
        exchange(first, more=((b"sec-fetch-site", b"cross-site"),)),
        exchange(first, kind=(b"text/plain",)),
        exchange(first, method="GET"),
    ]
    assert all(answer.refused for answer in ask_all(app, wrong + foreign))
    assert (once.word, told) == (first, [])
    good, again = ask_all(app, [exchange(first), exchange(first)])
    assert (good.status, good.json()) == (200, {"token": TOKEN})
    assert (again.status, again.json()["error"].count("newest address")) == (401, 1)
    assert told == [once.word] != [first]
    now[0] = LASTS + 1
    (late,) = ask_all(app, [exchange(told[0])])
    (answer,) = ask_all(app, [exchange(told[1])])
    assert (late.status, answer.json()) == (401, {"token": TOKEN})
