"""Models that cannot be read are refused in one line before anything runs."""

from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

from hopscope.circuits import discover, repeated_tokens
from hopscope.circuits.progress import watched
from hopscope.errors import CircuitError
from tests.circuits.families import TOKENS, made, of_family, transformers
from tests.conftest import TWO_HOPS

TASK = repeated_tokens(TOKENS, length=6)


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


def on_two_devices() -> Any:
    model = made("gpt2")  # its embedding and its head are one tensor
    model.transformer.h[1].to("meta")
    return model


def with_another_forward() -> Any:
    model = made("gpt2")
    forward = model.forward

    def whole(*inputs: Any, **named: Any) -> Any:
        return forward(*inputs, **named)

    model.forward = whole
    return model


SMALL = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "Bloom": (
        lambda: of_family("bloom", n_layer=1, n_head=2, hidden_size=16),
        "BloomForCausalLM does not use transformers' attention interface.*use CallbackModel",
    ),
    "Llama 4": (
        lambda: of_family(
            "llama4_text",
            **SMALL,
            num_key_value_heads=2,
            num_local_experts=1,
            intermediate_size=16,
            intermediate_size_mlp=16,
            layer_types=["chunked_attention"],
        ),
        "attend within chunks of positions",
    ),
    "layers that return a tuple": (
        lambda: of_family("falcon_h1", **SMALL, num_key_value_heads=2, intermediate_size=16),
        r"FalconH1ForCausalLM does not pass one stream .* \(too many indices",
    ),
    "no attention": (
        lambda: of_family("mamba", hidden_size=16, num_hidden_layers=1),
        "MambaForCausalLM has no attention heads",
    ),
    "encoder and decoder": (
        lambda: transformers.T5ForConditionalGeneration(
            transformers.T5Config(d_model=16, d_kv=8, num_heads=2, num_layers=1, vocab_size=TOKENS)
        ),
        "has an encoder and a decoder; expected a decoder alone",
    ),
    "no decoder": (
        lambda: transformers.BertForMaskedLM(
            transformers.BertConfig(**SMALL, vocab_size=TOKENS, intermediate_size=16)
        ),
        "attends to later positions.*only decoders are supported",
    ),
    "two devices": (on_two_devices, r"on 2 devices \(cpu, meta\)"),
    "no weights": (lambda: made("gpt2").to("meta"), "this model has no weights"),
    "another width": (encoder, "it takes 16 numbers a position: give EncoderAdapter an `embed`"),
    "another head": (
        lambda: transformers.AutoModelForQuestionAnswering.from_config(made("gpt2").config),
        "returns a QuestionAnsweringModelOutput; expected one with logits",
    ),
    "one answer": (
        lambda: transformers.AutoModelForSequenceClassification.from_config(made("gpt2").config),
        r"does not pass one stream .* \(Cannot handle batch sizes > 1",
    ),
    "another forward": (with_another_forward, "a forward in this GPT2LMHeadModel was replaced"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_that_cannot_be_read_are_refused(name: str) -> None:
    make, line = MODELS[name]
    task, said = TWO_HOPS if name == "another width" else TASK, list[str]()
    with watched(said.append), pytest.raises(CircuitError, match=line) as error:
        discover(make(), task, examples=8, fresh=8)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) <= 260
    assert said == []  # no step of the search began
