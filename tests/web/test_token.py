"""The token of a server, the file that may hold it, and the word that is exchanged for it."""

import json
import os
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


def test_every_start_makes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOPSCOPE_TOKEN_FILE", raising=False)
    made = {token() for _ in range(10)}
    assert len(made) == 10
    assert all(len(each) == 43 and FORM.fullmatch(each) for each in made)


def test_a_file_keeps_it_for_its_owner_alone(place: Path) -> None:
    first = token()
    assert place.read_text() == f"{first}\n"
    assert place.stat().st_mode & 0o777 == 0o600
    assert token() == first


def readable(path: Path) -> None:
    token()
    path.chmod(0o644)


def short(path: Path) -> None:
    token()
    path.write_text("secret")


def linked(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def piped(path: Path) -> None:
    os.mkfifo(path, 0o600)


def folder(path: Path) -> None:
    path.mkdir(0o700)


def below_a_file(path: Path) -> None:
    path.parent.joinpath("file").touch()
    os.environ["HOPSCOPE_TOKEN_FILE"] = str(path.parent / "file" / "token")


@pytest.mark.parametrize(
    ("prepare", "text"),
    [
        (readable, "can be read by others: chmod 600 "),
        (short, "holds no token: expected 32 to 200 letters"),
        (linked, "cannot be read: Too many levels of symbolic links"),
        (piped, "is no regular file"),
        (folder, "is no regular file"),
        (below_a_file, "cannot be read: Not a directory"),
    ],
)
def test_another_file_is_refused(place: Path, prepare: object, text: str) -> None:
    prepare(place)
    with pytest.raises(ConfigError) as caught:
        token()
    assert text in str(caught.value)
    assert str(caught.value).startswith("$HOPSCOPE_TOKEN_FILE ")


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path, place: Path) -> None:
    os.environ["HOPSCOPE_TOKEN_FILE"] = str(tmp_path / "none" / "token")
    with pytest.raises(ConfigError, match="cannot be made: No such file or directory"):
        token()


def exchange(word: object, **changed: object) -> Ask:
    ask = Ask("POST", b"/api/token", token=(), body=json.dumps({"word": word}).encode())
    return ask.but(**changed)


def test_a_word_is_exchanged_once_and_the_next_is_told() -> None:
    told = list[str]()
    once = Once(TOKEN, told.append)
    first = once.word
    app = made(once=once).app
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
    (answer,) = ask_all(app, [exchange(told[0])])
    assert answer.json() == {"token": TOKEN}


def test_a_word_that_comes_late_is_refused_and_the_next_is_told() -> None:
    told, now = list[str](), [0.0]
    once = Once(TOKEN, told.append, lambda: now[0])
    now[0] = LASTS + 1
    app = made(once=once).app
    (late,) = ask_all(app, [exchange(once.word)])
    (good,) = ask_all(app, [exchange(told[0])])
    assert (late.status, good.status) == (401, 200)
