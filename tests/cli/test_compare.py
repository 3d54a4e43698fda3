import json
from pathlib import Path

import pytest

from hopscope.cli.main import run as hopscope
from hopscope.configs import Experiment, Model
from hopscope.errors import ConfigError, RunMissing
from hopscope.store import Store
from hopscope.study import compare

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: Captured, *words: str) -> str:
    assert hopscope(["compare", *words]) == 0
    return capsys.readouterr().out


def test_two_models_side_by_side(root: Path, capsys: Captured) -> None:
    out = said(capsys, "gallery/demo", "gallery/planted", "--figure", "both.svg")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "setting gallery/demo gallery/planted" in lines
    assert "model.heads 4 1" in lines
    assert "model.d_head - 192" in lines
    assert "hop 1 learned at 404" in lines
    assert "value 1 ← value 2 - 1.0" in lines
    assert any(line.endswith("in gallery/planted alone") for line in lines)
    assert lines[-2] == "figure: both.svg"
    assert lines[-1].startswith("Loss of each hop during training")
    assert (root / "both.svg").stat().st_size > 1_000


def test_json_is_what_python_says(capsys: Captured) -> None:
    out = said(capsys, "gallery/demo", "gallery/planted", "--json")
    assert json.loads(out) == compare("gallery/demo", "gallery/planted").to_dict()


def test_runs_without_losses_or_circuits(capsys: Captured) -> None:
    one = Store().create(Experiment()).name
    other = Store().create(Experiment(model=Model(layers=2))).name
    out = said(capsys, one, other)
    assert "model.layers" in out
    assert "neither has losses" in out
    assert f"{one} has no checkpoint" in out


def test_mistakes_are_one_line(root: Path) -> None:
    with pytest.raises(ConfigError, match="gallery/demo is one run, given twice"):
        hopscope(["compare", "gallery/demo", "gallery/demo"])
    with pytest.raises(ConfigError, match="only runs of one kind can be compared"):
        hopscope(["compare", "gallery/demo", "gallery/ngram"])
    with pytest.raises(RunMissing, match="no run matches 'x'"):
        hopscope(["compare", "gallery/demo", "x"])
    with pytest.raises(ConfigError, match="needs"):
        hopscope(["compare", "gallery/demo"])
    with pytest.raises(ConfigError, match="ends in"):
        hopscope(["compare", "gallery/demo", "gallery/planted", "--figure", "x.foo"])
    assert sorted(root.iterdir()) == []
