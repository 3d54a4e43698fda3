"""Two runs side by side."""

import json
from pathlib import Path

import pytest
from reproducing import Said

from hopscope.configs import Experiment, Model
from hopscope.store import Store
from hopscope.study import compare


def test_two_models_side_by_side(root: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = said("compare", "gallery/demo", "gallery/planted", "--figure", "both.svg")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for line in ("model.heads 4 1", "model.d_head - 192", "hop 1 learned at 404"):
        assert line in lines
    assert "value 1 ← value 2 - 1.0" in lines
    assert any(line.endswith("in gallery/planted alone") for line in lines)
    assert lines[-1].startswith("Loss of each hop during training")
    assert (root / "both.svg").stat().st_size > 1_000
    told = json.loads(said("compare", "gallery/demo", "gallery/planted", "--json"))
    assert told == compare("gallery/demo", "gallery/planted").to_dict()


def test_runs_without_losses_or_circuits(root: Path, said: Said) -> None:
    one, other = (Store().create(Experiment(model=Model(layers=n))).name for n in (4, 2))
    out = said("compare", one, other)
    assert "model.layers" in out
    assert "neither has losses" in out
    assert f"{one} has no checkpoint" in out
