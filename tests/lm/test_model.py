"""Where models are opened from, and which are refused: one line each, and no network."""

import shutil
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from calling import Patch
from families import LLAMA, made, of_family

from hopscope.errors import ConfigError, LmError
from hopscope.lm.model import LanguageModel, dtype_of, load
from hopscope.lm.prompts import Question
from hopscope.lm.scoring import complete, probabilities

ASKED = Question("a = 1 b = a b = ?", "1", ("0", "1"), (), 0, 0)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path / "cache"))


def test_a_folder_is_opened(mine: Path, tiny: LanguageModel) -> None:
    again = load(str(mine), "float32", "cpu", "raw", 4)
    assert (again.name, again.device, again.model.dtype) == (
        str(mine), torch.device("cpu"), torch.float32,
    )  # fmt: skip
    (found,), (expected,) = (probabilities(its, [ASKED]) for its in (again, tiny))
    assert found == pytest.approx(expected, rel=1e-4)
    for dtype in ("bfloat16", "float16"):
        other = load(str(mine), dtype, "cpu", "raw")
        assert other.model.dtype == getattr(torch, dtype)
        assert all(0 < chance < 1e-3 for chance in probabilities(other, [ASKED])[0])


@pytest.mark.cuda
def test_a_gpu_answers_as_the_cpu_does(mine: Path) -> None:
    here, there = (load(str(mine), "float32", device, "raw", 4) for device in ("cpu", "cuda"))
    assert there.device.type == "cuda"
    (found,), (expected,) = (probabilities(its, [ASKED]) for its in (there, here))
    assert found == pytest.approx(expected, rel=1e-3)
    assert complete(there, [ASKED], 0.0, [0]) == complete(here, [ASKED], 0.0, [0])
    assert complete(there, [ASKED], 1.0, [7]) == complete(here, [ASKED], 1.0, [7])


def test_auto_is_bfloat16_on_a_gpu_that_multiplies_it(monkeypatch: Patch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for capability, expected in (((9, 0), "bfloat16"), ((8, 0), "bfloat16"), ((7, 5), "float32")):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, c=capability: c)
        assert dtype_of("auto") == dtype_of("auto", "cuda:0") == expected
        assert dtype_of("auto", "cpu") == "float32"
    assert dtype_of("float16", "cpu") == "float16"


def test_what_cannot_be_opened_is_one_line(tmp_path: Path, mine: Path, tiny: LanguageModel) -> None:
    def changed(name: str, removed: str) -> str:
        folder = tmp_path / name
        shutil.copytree(mine, folder)
        for path in folder.glob(removed):
            path.unlink()
        return str(folder)

    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    weightless = changed("weightless", "*.safetensors")
    torch.save(tiny.model.state_dict(), Path(weightless) / "pytorch_model.bin")  # a pickle
    for where, options, line in (
        ("smollm2-135m", {}, "is not on this machine: `hopscope lm pull smollm2-135m`"),
        ("ours/gated@main", {}, "is not on this machine: `hopscope lm pull ours/gated@main`"),
        ("nothing", {}, "no model 'nothing': expected one of smollm2"),
        (changed("no-tokenizer", "tokenizer*"), {}, "cannot open the tokenizer of .*no-tokenizer"),
        (weightless, {}, "cannot open the weights of .*weightless: its weights are a pickle"),
        (str(tmp_path / "broken.gguf"), {}, "cannot open the config of .*broken.gguf"),
        (str(mine), {"dtype": "bf16"}, "dtype is 'bf16'; expected auto, float32, bfloat16"),
    ):
        with pytest.raises(LmError, match=line) as refused:
            load(where, **{"dtype": "float32", "device": "cpu", "template": "raw"} | options)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 400
    with pytest.raises(ConfigError, match="device is 'tpu'; expected auto, cpu, cuda or cuda:N"):
        load(str(mine), device="tpu")


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_a_model_that_does_not_fit_is_one_line(
    mine: Path, monkeypatch: Patch, error: Exception
) -> None:
    def full(*_: Any) -> None:
        raise error

    monkeypatch.setattr(transformers.PreTrainedModel, "to", full)
    with pytest.raises(LmError, match="does not fit into the memory of cpu: use --dtype bfloat16"):
        load(str(mine), "float32", "cpu", "raw")


PROMPT = "{{ messages[0]['content'] }}"
TEMPLATES = [
    ("{{ messages[0]['content'] | upper }}", "changes the question, or prints it twice: use --te"),
    (PROMPT * 2, "changes the question, or prints it twice: use --template raw"),
    ("{{ raise_exception('give a\n role') }}", "refuses a question: give a role: use --template"),
]


def test_a_chat_template_has_to_print_the_question_once(tiny: LanguageModel) -> None:
    tokenizer = deepcopy(tiny.tokenizer)
    for tokenizer.chat_template, line in TEMPLATES:
        with pytest.raises(LmError, match=f"^tiny's chat template {line}") as refused:
            LanguageModel(tiny.model, tokenizer, "tiny").text(ASKED.prompt)
        assert "\n" not in str(refused.value)
    tokenizer.chat_template = "user: {{ messages[0]['content'] | trim }}\nyou:"
    text = LanguageModel(tiny.model, tokenizer, "tiny").text(ASKED.prompt, " b is")
    assert text == f"user: {ASKED.prompt}\nyou: b is"


COUNTS, OTHER = (
    "counts the positions of tokens itself (as ALiBi",
    "has layers other than plain atten",
)
REFUSED = [
    ("mpt", {"d_model": 32, "n_heads": 4, "n_layers": 1}, COUNTS),
    ("mamba", {"hidden_size": 32, "num_hidden_layers": 1}, OTHER),
    ("lfm2", LLAMA | {"layer_types": ["conv", "full_attention"]}, OTHER),
]


def test_who_goes_by_other_places_is_refused(tiny: LanguageModel) -> None:
    for family, options, does in REFUSED:
        with pytest.raises(LmError) as refused:
            LanguageModel(of_family(family, **options), tiny.tokenizer, "tiny", "raw")
        line = str(refused.value)
        assert line.startswith(f"tiny is a model of type {family}, which {does}")
        assert line.endswith("serve it, and ask the endpoint with --protocol paper or greedy")
        assert "\n" not in line


def test_a_model_without_a_language_model_head_is_refused(tiny: LanguageModel) -> None:
    config = transformers.AutoConfig.for_model("llama", **LLAMA)
    for kind in (transformers.AutoModel, transformers.AutoModelForSequenceClassification):
        with pytest.raises(LmError, match="which gives no logits of next tokens; expected a model"):
            LanguageModel(kind.from_config(config), tiny.tokenizer, "tiny", "raw")


MIXED = ["sliding_attention", "full_attention"]
WINDOW, CONTEXT = (16, "window of attention"), (24, "context")
ROOMS = [
    ("llama", {}, CONTEXT),
    ("llama", {"sliding_window": 16}, CONTEXT),  # which the model ignores
    ("mistral", {"sliding_window": 16}, WINDOW),
    ("gemma3_text", {"sliding_window": 16, "layer_types": MIXED}, WINDOW),
    ("gemma3_text", {"sliding_window": 16, "layer_types": MIXED[1:] * 2}, CONTEXT),
    ("qwen2", {"sliding_window": 16}, CONTEXT),
    ("llama4_text", {"attention_chunk_size": 16}, WINDOW),
    ("gpt_neo", {"window_size": 16, "attention_types": [[["global", "local"], 1]]}, WINDOW),
]


def test_the_smallest_of_context_and_windows_is_the_room(tiny: LanguageModel) -> None:
    for family, options, expected in ROOMS:
        config = transformers.AutoConfig.for_model(family, **LLAMA | options)
        its = SimpleNamespace(model=transformers.PreTrainedModel(config))
        assert LanguageModel.room.func(its) == expected, (family, options)
    model = made("gemma3_text", sliding_window=16, max_position_embeddings=64)
    its = LanguageModel(model, tiny.tokenizer, "tiny", "raw", 4)
    short, long = (
        Question(prompt, "0", ("0", "1"), (), 0, 0)
        for prompt in ("a = 1 a ?", "a = 1 b = a c = b c = ?")
    )
    (together,) = probabilities(its, [short])
    assert all(0 < chance < 1 for chance in together)
    for ask in (partial(probabilities, its, [long]), partial(complete, its, [long], 0.0, [0])):
        with pytest.raises(LmError, match="do not fit into tiny's window of attention of 16: ask"):
            ask()
