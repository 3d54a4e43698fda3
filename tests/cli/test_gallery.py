"""The gallery at the command line, where the package's own folder cannot be written to."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopscope.circuits import Circuit
from hopscope.cli.main import run as command
from hopscope.errors import ConfigError, RunReadOnly, StoreUnwritable
from hopscope.store import Store, gallery


def tree(folder: Path) -> dict[Path, int]:
    """Every file and folder, and when it was changed."""
    return {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, beside a gallery that is read-only and stays as it is."""
    shipped = tmp_path / "package"
    shutil.copytree(gallery.ROOT, shipped)
    for path in tree(shipped):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(shipped)
    monkeypatch.setattr(gallery, "ROOT", shipped)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("HOPSCOPE_STORE", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield tmp_path / "here"
    assert tree(shipped) == before
    for path in before:
        path.chmod(0o755)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert command(arguments) == 0
    return capsys.readouterr().out


def test_the_list_says_what_and_from_where(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "gallery")
    for name in gallery.names():
        assert f"\ngallery/{name}" in out
        assert f"\ngallery/{name}: " in out
    assert re.search(r"gallery/demo +retrieval +2 +3 +4 +64 ", out)
    assert "written by hand, not trained (hopscope " in out
    assert "rounded to float16, so that the package stays small" in out


@pytest.mark.slow
def test_what_reads_needs_no_store_and_writes_nothing_there(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "files are as committed" in said(capsys, "verify", "gallery/transformer-a")
    said(capsys, "maps", "gallery/transformer-a", "--examples", "8")
    assert (here / "reports/gallery/transformer-a-maps.svg").stat().st_size > 1000
    assert "the model" in said(capsys, "ablate", "gallery/planted", "--head", "0.0=uniform")
    assert "query ← value 0" in said(capsys, "circuit", "show", "gallery/planted")
    story = said(capsys, "emergence", "gallery/demo", "--examples", "8", "--out", "story.json")
    assert "emerged at step" in story
    assert len(json.loads((here / "story.json").read_text())["steps"]) > 20
    said(capsys, "markov", "figures", "gallery/ngram")
    assert (here / "reports/gallery/ngram-stages.svg").stat().st_size > 1000
    assert sorted(path.name for path in here.iterdir()) == ["reports", "story.json"]


def test_show_says_what_was_trained_and_what_was_not(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = said(capsys, "show", "gallery/demo")
    assert "rounded to float16" in trained
    assert "final loss" in trained
    assert "training.steps" in trained
    by_hand = said(capsys, "show", "gallery/planted")
    assert "written by hand, not trained" in by_hand
    assert "trained in" not in by_hand
    assert "training." not in by_hand
    assert "stage" not in said(capsys, "show", "gallery/ngram").splitlines()[0]
    with pytest.raises(ConfigError, match="gallery/planted was not trained: it has no loss curves"):
        command(("show", "gallery/planted", "--figure", "loss.svg"))


@pytest.mark.parametrize(
    "asked",
    [
        ("discover", "gallery/demo"),
        ("resume", "gallery/demo"),
        ("rm", "gallery/demo"),
    ],
)
def test_what_writes_says_how_to_get_a_copy(here: Path, asked: tuple[str, ...]) -> None:
    line = "gallery/demo is read-only, as it comes with hopscope: `hopscope gallery copy demo`"
    with pytest.raises(RunReadOnly, match=line):
        command(asked)
    assert list(here.iterdir()) == []


def test_a_circuit_can_be_kept_beside_what_is_read_only(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("discover", "gallery/planted", "--examples", "16", "--out", "mine.json")
    assert "kept mine.json" in said(capsys, *asked)
    assert Circuit.load(here / "mine.json").paths
    (here / "file").write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write file/x.json: a part of the path"):
        command((*asked[:-1], "file/x.json"))


def test_a_copy_is_an_ordinary_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "gallery", "copy", "planted", "--store", "mine")
    assert out == "gallery-planted: a copy of gallery/planted, in mine/gallery-planted\n"
    assert Store("mine").names() == ["gallery-planted"]
    assert "gallery-planted" in said(capsys, "runs", "--store", "mine")
    found = said(capsys, "discover", "planted", "--examples", "16", "--store", "mine")
    assert "query ← value 1" in found
    assert "as committed" in said(capsys, "verify", "gallery-planted", "--store", "mine")
    assert "by hand, not trained" in said(capsys, "show", "gallery-planted", "--store", "mine")
    said(capsys, "gallery", "copy", "gallery/ngram", "--store", "mine")
    counted = said(capsys, "sql", "select distinct run from metrics", "--store", "mine", "--csv")
    assert counted.split() == ["run", "gallery-ngram"]
    said(capsys, "rm", "gallery-planted", "--store", "mine")
    with pytest.raises(
        ConfigError, match="gallery copy needs GALLERY: A model that `hopscope gallery` lists"
    ):
        command(("gallery", "copy"))
