"""Models that go by other places than those they are told are refused, and so are long prompts."""

from typing import Any

import pytest
import transformers
from transformers import AutoModelForCausalLM

from hopscope.errors import LlmError
from hopscope.llm.local import LocalModel
from hopscope.llm.places import room

COMMON: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": 0,
}  # fmt: skip
LLAMA = COMMON | {"intermediate_size": 32, "num_key_value_heads": 2}


def local(tokenizer: Any, family: str, **options: Any) -> LocalModel:
    config = getattr(transformers, f"{family}Config")(**options)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return LocalModel(model, tokenizer, "tiny", "raw", 4)


COUNTS, OTHER = (
    "counts the places of tokens itself (ALiBi does",
    "has layers other than plain atten",
)
REFUSED = [
    ("Mpt", {"d_model": 32, "n_heads": 4, "n_layers": 1}, COUNTS),
    ("Bloom", {"hidden_size": 32, "n_head": 4, "n_layer": 1}, COUNTS),
    ("Falcon", COMMON | {"alibi": True}, COUNTS),
    ("Mamba", {"hidden_size": 32, "num_hidden_layers": 1}, OTHER),
    ("Lfm2", LLAMA | {"layer_types": ["conv", "full_attention"]}, OTHER),
]


def test_who_goes_by_other_places_is_refused(tiny: LocalModel) -> None:
    for family, options, does in REFUSED:
        with pytest.raises(LlmError) as refused:
            local(tiny.tokenizer, family, **options | {"vocab_size": 64})
        line = str(refused.value)
        assert line.startswith(f"tiny is a model of type {family.lower()}, which {does}")
        assert line.endswith("serve it, and ask the endpoint with --protocol paper or greedy")
        assert "\n" not in line


MIXED = ["sliding_attention", "full_attention"]
WINDOW, CONTEXT = (24, "window of attention"), (64, "context")
ROOMS = [
    ("Llama", {}, CONTEXT),
    ("Mistral", {"sliding_window": 24}, WINDOW),
    ("Mistral", {"sliding_window": 100}, CONTEXT),
    ("Mistral", {"sliding_window": None}, CONTEXT),
    ("Gemma3Text", {"sliding_window": 24, "layer_types": MIXED}, WINDOW),
    ("Gemma3Text", {"sliding_window": 24, "layer_types": MIXED[1:] * 2}, CONTEXT),
    ("Qwen2", {"sliding_window": 24}, CONTEXT),
    ("Llama4Text", {"attention_chunk_size": 24}, WINDOW),
    ("GPTNeo", {"window_size": 24, "attention_types": [[["global", "local"], 1]]}, WINDOW),
]


def test_the_smallest_of_context_and_windows_is_the_room(tiny: LocalModel) -> None:
    for family, options, expected in ROOMS:
        config = getattr(transformers, f"{family}Config")(**LLAMA | options)
        assert room(transformers.PreTrainedModel(config)) == expected, (family, options)
    its = local(tiny.tokenizer, "Gemma3Text", **LLAMA, head_dim=8, sliding_window=16)
    short, long = "a = 1 a ?", "a = 1 b = a c = b c = ?"
    (together,) = its.probabilities([short], [["0", "1"]])
    assert all(0 < chance < 1 for chance in together)
    for ask in (lambda: its.probabilities([long], [["0"]]), lambda: its.complete([long], 0.0, [0])):
        with pytest.raises(LlmError, match="do not fit into tiny's window of attention of 16: ask"):
            ask()
