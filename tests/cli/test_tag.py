from pathlib import Path

import pytest

from hopscope.cli.main import run as hopscope
from hopscope.configs import Experiment, Retrieval
from hopscope.errors import ConfigError, RunReadOnly
from hopscope.store import Store

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path))
    return tuple(Store().create(Experiment(task=Retrieval(hops=hops))).name for hops in (1, 2))


def said(capsys: Captured, *words: str) -> str:
    assert hopscope([*words]) == 0
    return capsys.readouterr().out


def test_a_tag_stands_where_a_run_is_asked_for(names: tuple[str, ...], capsys: Captured) -> None:
    one, other = names
    assert said(capsys, "tag", one) == f"{one}: no tags\n"
    assert said(capsys, "tag", one, "mine", "first") == f"{one}: first, mine\n"
    assert said(capsys, "show", "mine").splitlines()[-1].endswith(" UTC, tags: first, mine")
    for words in (["show", "mine", "--config"], ["verify", "mine"], ["tag", "mine"]):
        assert hopscope(words) == 0
    capsys.readouterr()
    assert said(capsys, "tag", "mine", "first", "--remove") == f"{one}: mine\n"
    assert said(capsys, "rm", "mine", "--dry-run") == f"would remove {Store().root / one}\n"
    assert said(capsys, "rm", "mine") == f"removed {Store().root / one}\n"
    assert Store().names() == [other]
    assert Store().tags() == {}


def test_a_tag_that_is_not_alone_is_told(names: tuple[str, ...], capsys: Captured) -> None:
    said(capsys, "tag", names[0], "both")
    out = said(capsys, "tag", names[1], "both")
    assert out == f"{names[1]}: both\nboth is the tag of 2 runs: it names none of them alone\n"


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (["d1", "a/b"], ConfigError, "the tag is 'a/b'; expected up to 64 letters"),
        (["d1", "--remove"], ConfigError, "tag --remove needs the tags that are to go"),
        (["d1", "x", "--remove"], ConfigError, "has no tag 'x'; it has none"),
        (["gallery/demo", "x"], RunReadOnly, "gallery/demo is read-only"),
    ],
)
def test_mistakes_are_one_line(words: list[str], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        hopscope(["tag", *words])
    assert "\n" not in str(caught.value)
    assert Store().tags() == {}


def test_tags_that_cannot_be_read_hide_no_run(names: tuple[str, ...], capsys: Captured) -> None:
    (Store().root / "tags.json").write_text("{")
    assert hopscope(["show", names[0]]) == 0
    captured = capsys.readouterr()
    assert "stopped at step 0 of " in captured.out.splitlines()[-1]
    assert captured.err.count("\n") == 1
    assert "tags.json holds no tags" in captured.err
