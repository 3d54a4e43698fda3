"""`hopscope view RUN --out FOLDER --single FILE`: the page as files, without a server."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.store import Store
from hopscope.training import train

Say = Callable[..., tuple[int, str, str]]


def test_a_run_becomes_files(tmp_path: Path, tiny: Experiment, hopscope: Say) -> None:
    name = train(tiny, Store(tmp_path / "runs")).name
    words = ("--out", str(tmp_path / "site"), "--single", str(tmp_path / "page.html"))
    code, out, err = hopscope("view", name, *words, "--store", str(tmp_path / "runs"))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"page: {tmp_path / 'site' / 'index.html'}",
        f"page: {tmp_path / 'page.html'}",
    ]
    for page in (tmp_path / "site" / "index.html", tmp_path / "page.html"):
        assert "default-src 'none'" in page.read_text()
    assert name in (tmp_path / "site" / "data.js").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere", "--out", "site"), "nowhere"),
        (("gallery/demo", "--single", "."), "is a folder; expected a file"),
        (("gallery/demo", "--out", "site", "--single", "mine"), "hopscope did not write it"),
        (("gallery/demo", "--single", "page.html", "--out", "."), "hopscope did not write it"),
    ],
)
def test_what_cannot_be_written(
    tmp_path: Path,
    hopscope: Say,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "data.js"):
        (tmp_path / name).write_text("mine")
    code, out, err = hopscope("view", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "mine": "mine",
        "data.js": "mine",
    }
