"""Folders of transformers whose config and weights do not fit."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from hopscope.circuits.adapters.pretrained import pretrained
from hopscope.cli.subject import Subject
from hopscope.errors import CircuitError, RunWarning
from hopscope.store import Store

transformers = pytest.importorskip("transformers")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = transformers.GPT2Config(vocab_size=11, n_positions=16, n_embd=8, n_layer=2, n_head=2)
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    return tmp_path


def changed(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def rewritten(folder: Path, name: Callable[[str], str]) -> None:
    """Weights under other names; those of no name are left out."""
    path = folder / "model.safetensors"
    weights = {name(old): its for old, its in load_file(path).items()}
    save_file({new: its for new, its in weights.items() if new}, path, {"format": "pt"})


@pytest.mark.parametrize(
    ("harm", "line"),
    [
        (lambda f: rewritten(f, lambda n: "" if n.endswith("h.1.ln_1.bias") else n),
         r"files lack transformer\.h\.1\.ln_1\.bias, which would be random"),
        (lambda f: rewritten(f, lambda n: f"other.{n}"), r"files lack .* and \d+ more"),
        (lambda f: changed(f, n_layer=3), r"files lack transformer\.h\.2.* and \d+ more"),
        (lambda f: changed(f, vocab_size=12), r"wte.weight is \(11, 8\), .*config.json \(12, 8\)"),
    ],
)  # fmt: skip
def test_random_numbers_are_no_weights(
    folder: Path, harm: Callable[[Path], object], line: str
) -> None:
    harm(folder)
    with pytest.raises(CircuitError, match=line):
        pretrained(folder)


def test_what_a_config_leaves_out_is_said(folder: Path) -> None:
    changed(folder, n_layer=1)
    with pytest.warns(RunWarning, match=r"no place for transformer\.h\.1.* and \d+ more"):
        assert len(pretrained(folder).transformer.h) == 1


def test_no_pickle_is_read_and_no_code_of_a_folder_is_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # transformers asks whether to run it
    (folder / "theirs.py").write_text(
        f"open({str(tmp_path / 'was_run')!r}, 'w')\n"
        "from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast\n"
        "class Config(GPT2Config): model_type = 'theirs'\n"
        "class Model(GPT2LMHeadModel): config_class = Config\n"
        "class Words(PreTrainedTokenizerFast): pass\n"
    )
    words = {"tokenizer_class": "Words", "auto_map": {"AutoTokenizer": [None, "theirs.Words"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    with pytest.raises(CircuitError, match="tokenizer .* cannot be loaded"):
        Subject(f"hf:{folder}", Store(tmp_path / "runs")).words()
    code = {"AutoConfig": "theirs.Config", "AutoModelForCausalLM": "theirs.Model"}
    changed(folder, model_type="theirs", auto_map=code)
    with pytest.raises(ValueError, match="trust_remote_code"):
        pretrained(folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(OSError, match=r"its weights are a pickle .*save_pretrained"):
        pretrained(folder)
    assert not (tmp_path / "was_run").exists()
