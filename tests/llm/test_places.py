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


@pytest.mark.parametrize(
    ("family", "options", "does"),
    [
        ("Mpt", {"d_model": 32, "n_heads": 4, "n_layers": 1}, "counts the places of tokens itself"),
        ("Bloom", {"hidden_size": 32, "n_head": 4, "n_layer": 1}, "counts the places of tokens"),
        ("Falcon", COMMON | {"alibi": True}, "counts the places of tokens itself (ALiBi does"),
        ("Mamba", {"hidden_size": 32, "num_hidden_layers": 1}, "has layers other than plain atten"),
        ("Lfm2", LLAMA | {"layer_types": ["conv", "full_attention"]}, "has layers other than plai"),
    ],
)
def test_who_goes_by_other_places_is_refused(
    tiny: LocalModel, family: str, options: dict[str, Any], does: str
) -> None:
    with pytest.raises(LlmError) as refused:
        local(tiny.tokenizer, family, **options | {"vocab_size": 64})
    line = str(refused.value)
    assert line.startswith(f"tiny is a model of type {family.lower()}, which {does}")
    assert line.endswith("serve it, and ask the endpoint with --protocol paper or greedy")
    assert "\n" not in line


MIXED = ["sliding_attention", "full_attention"]
ROOMS = [
    ("Llama", {}, (64, "context")),
    ("Mistral", {"sliding_window": 24}, (24, "window of attention")),
    ("Mistral", {"sliding_window": 100}, (64, "context")),
    ("Mistral", {"sliding_window": None}, (64, "context")),
    ("Gemma3Text", {"sliding_window": 24, "layer_types": MIXED}, (24, "window of attention")),
    ("Gemma3Text", {"sliding_window": 24, "layer_types": MIXED[1:] * 2}, (64, "context")),
    ("Qwen2", {"sliding_window": 24}, (64, "context")),
    ("Llama4Text", {"attention_chunk_size": 24}, (24, "window of attention")),
    (
        "GPTNeo",
        {"window_size": 24, "attention_types": [[["global", "local"], 1]]},
        (24, "window of attention"),
    ),
]


@pytest.mark.parametrize(("family", "options", "expected"), ROOMS)
def test_the_smallest_of_context_and_windows_is_the_room(
    family: str, options: dict[str, Any], expected: tuple[int, str]
) -> None:
    config = getattr(transformers, f"{family}Config")(**LLAMA | options)
    assert room(transformers.PreTrainedModel(config)) == expected


@pytest.mark.parametrize("family", ["Mistral", "Gemma3Text"])
def test_a_prompt_beyond_a_window_is_refused(tiny: LocalModel, family: str) -> None:
    its = local(tiny.tokenizer, family, **LLAMA, head_dim=8, sliding_window=16)
    short, long = "a = 1 a ?", "a = 1 b = a c = b c = ?"
    (together,) = its.probabilities([short], [["0", "1"]])
    assert all(0 < chance < 1 for chance in together)
    for ask in (lambda: its.probabilities([long], [["0"]]), lambda: its.complete([long], 0.0, [0])):
        with pytest.raises(LlmError, match="do not fit into tiny's window of attention of 16: ask"):
            ask()
