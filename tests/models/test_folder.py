import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from hopscope.configs import Interface, Model
from hopscope.errors import HopscopeError
from hopscope.models import Transformer, load, save

INTERFACE = Interface(tokens=False, inputs=4, length=5, read=2, outputs=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(Transformer.seeded(Model(d_model=8, layers=1), INTERFACE, 0), tmp_path / "model")
    return tmp_path / "model"


def test_a_loaded_model_computes_the_same(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    inputs = torch.ones(2, 5, 4)
    original = Transformer.seeded(Model(d_model=8, layers=1), INTERFACE, 0)
    assert torch.equal(load(folder)(inputs), original(inputs))


def change(folder: Path, **values: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def rewrite(folder: Path, dtype: torch.dtype, number: float = 1.0) -> None:
    """Weights of the same names and shapes, all of them this number."""
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    other = {name: torch.full_like(t, number).to(dtype) for name, t in weights.items()}
    safetensors.torch.save_file(other, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json is missing"),
        (lambda f: (f / "config.json").write_text("{"), "does not describe a model"),
        (lambda f: change(f, format=9), "format 9, expected 1: upgrade"),
        (lambda f: change(f, model={"layers": 0}), "layers: Input should be greater"),
        (lambda f: change(f, model={"layers": 2, "d_model": 8}), "lacks blocks.1"),
        (lambda f: change(f, model={"layers": 1, "d_model": 16}), "expected .16"),
        (lambda f: (f / "model.safetensors").write_bytes(b"short"), "not a safetensors file"),
        (lambda f: (f / "config.json").write_text("[" * 100_000), "does not describe a model"),
        (lambda f: change(f, model={"layers": 1, "d_model": 2**20}), "a model of another shape"),
        (lambda f: change(f, model={"layers": 1, "d_model": 2**30}), "a model of impossible size"),
        (lambda f: change(f, model={"layers": 2**30, "d_model": 8}), "1,073,741,824 layers: it"),
        (lambda f: rewrite(f, torch.int64), "holds what is not a number"),
        (lambda f: rewrite(f, torch.float32, torch.nan), "holds what is not a number"),
    ],
)
def test_a_damaged_folder_is_refused_on_one_line(folder: Path, harm: object, text: str) -> None:
    harm(folder)  # type: ignore[operator]
    with pytest.raises(HopscopeError, match=text) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


def test_a_fleet_is_saved_member_by_member(tmp_path: Path) -> None:
    fleet = Transformer(Model(d_model=8), INTERFACE, models=(0, 1))
    with pytest.raises(HopscopeError, match="save its members"):
        save(fleet, tmp_path)
    save(fleet.member(1), tmp_path)
    weights = fleet.state_dict()["head.weight"][1]
    assert torch.equal(load(tmp_path).state_dict()["head.weight"], weights)
