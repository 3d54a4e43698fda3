"""The gallery at the command line, where the package's own folder cannot be written to."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from reproducing import Said

from hopscope.circuits import Circuit
from hopscope.cli.main import run as command
from hopscope.errors import RunReadOnly
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


def test_the_list_says_what_and_from_where(here: Path, said: Said) -> None:
    out = said("gallery")
    for name in gallery.names():
        assert f"\ngallery/{name}: " in out
    assert re.search(r"gallery/demo +retrieval +2 +3 +4 +64 ", out)
    assert "written by hand, not trained (hopscope " in out
    assert "rounded to float16, so that the package stays small" in out


@pytest.mark.slow
def test_what_reads_needs_no_store_and_writes_nothing_there(here: Path, said: Said) -> None:
    assert "files are as committed" in said("verify", "gallery/transformer-a")
    said("maps", "gallery/transformer-a", "--examples", "8")
    assert (here / "reports/gallery/transformer-a-maps.svg").stat().st_size > 1000
    assert "the model" in said("ablate", "gallery/planted", "--head", "0.0=uniform")
    assert "query ← value 0" in said("circuit", "show", "gallery/planted")
    story = said("emergence", "gallery/demo", "--examples", "8", "--out", "story.json")
    assert "emerged at step" in story
    assert len(json.loads((here / "story.json").read_text())["steps"]) > 20
    said("markov", "figures", "gallery/ngram")
    assert (here / "reports/gallery/ngram-stages.svg").stat().st_size > 1000
    assert sorted(path.name for path in here.iterdir()) == ["reports", "story.json"]


def test_show_says_what_was_trained_and_what_was_not(here: Path, said: Said) -> None:
    trained = said("show", "gallery/demo")
    assert "rounded to float16" in trained
    assert "final loss" in trained
    assert "training.steps" in trained
    by_hand = said("show", "gallery/planted")
    assert "written by hand, not trained" in by_hand
    assert "trained in" not in by_hand
    assert "training." not in by_hand
    assert "stage" not in said("show", "gallery/ngram").splitlines()[0]


def test_what_writes_leaves_it_and_says_how_to_get_a_copy(here: Path, said: Said) -> None:
    line = "gallery/demo is read-only, as it comes with hopscope: `hopscope gallery copy demo`"
    for word in ("discover", "resume", "rm"):
        with pytest.raises(RunReadOnly, match=line):
            command((word, "gallery/demo"))
    assert list(here.iterdir()) == []
    asked = ("discover", "gallery/planted", "--examples", "16", "--out", "mine.json")
    assert "kept mine.json" in said(*asked)
    assert Circuit.load(here / "mine.json").paths


def test_a_copy_is_an_ordinary_run(here: Path, said: Said) -> None:
    out = said("gallery", "copy", "planted", "--store", "mine")
    assert out == "gallery-planted: a copy of gallery/planted, in mine/gallery-planted\n"
    assert Store("mine").names() == ["gallery-planted"]
    assert "gallery-planted" in said("runs", "--store", "mine")
    found = said("discover", "planted", "--examples", "16", "--store", "mine")
    assert "query ← value 1" in found
    assert "as committed" in said("verify", "gallery-planted", "--store", "mine")
    assert "by hand, not trained" in said("show", "gallery-planted", "--store", "mine")
    said("gallery", "copy", "gallery/ngram", "--store", "mine")
    counted = said("sql", "select distinct run from metrics", "--store", "mine", "--csv")
    assert counted.split() == ["run", "gallery-ngram"]
    said("rm", "gallery-planted", "--store", "mine")
