"""What cannot be read is refused in one line before anything runs, whoever asks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from torch import nn

from hopscope.circuits import Drawn, OwnTask, discover, repeated_tokens
from hopscope.circuits.examples import Questions
from hopscope.errors import CircuitError, HopscopeError
from tests.circuits.families import TOKENS, made, transformers
from tests.conftest import TWO_HOPS

LENGTH = 6
TASK = repeated_tokens(TOKENS, length=LENGTH)


def of_family(family: str, **config: Any) -> Any:
    """A model that `made` does not know."""
    every = {"vocab_size": TOKENS, "bos_token_id": 0, "eos_token_id": 0, **config}
    return transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(family, **every)
    )


def task_with(change: Callable[[Drawn], Drawn]) -> OwnTask:
    return OwnTask(lambda n, seed: change(TASK.draw(n, seed)), roles=["token"], chance=4.0, hops=2)


def padded(drawn: Drawn) -> Drawn:
    inputs = drawn.inputs.clone().clamp_min(1)
    inputs[0, :2] = 0
    return replace(drawn, inputs=inputs, roles=["token"] * inputs.shape[1])


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
    "GPT-J": (
        lambda: of_family("gptj", n_layer=1, n_head=2, n_embd=16, rotary_dim=4),
        "GPTJForCausalLM does not use transformers' attention interface.*use CallbackModel",
    ),
    "Bloom": (
        lambda: of_family("bloom", n_layer=1, n_head=2, hidden_size=16),
        "BloomForCausalLM does not use transformers' attention interface",
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
TASKS: dict[str, tuple[Questions, str]] = {
    "left padding": (task_with(padded), "different numbers of token 0"),
    "another role": (
        task_with(lambda its: replace(its, roles=["letter"] * its.inputs.shape[1])),
        "a position has the role 'letter'; the task's roles are token",
    ),
}


def refused(model: Any, task: Questions, line: str, **settings: Any) -> None:
    said: list[str] = []
    with pytest.raises(HopscopeError, match=line) as error:
        discover(model, task, watch=said.append, **{"examples": 8, "fresh": 8, **settings})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) <= 260
    assert said == []  # no step of the search began


@pytest.mark.parametrize("name", MODELS)
def test_models_that_cannot_be_read_are_refused(name: str) -> None:
    make, line = MODELS[name]
    vectors = name == "another width"
    refused(make(), TWO_HOPS if vectors else TASK, line)


@pytest.mark.parametrize("name", TASKS)
def test_tasks_that_do_not_fit_are_refused(name: str) -> None:
    task, line = TASKS[name]
    refused(made("gpt2", pad_token_id=0), task, line)


def test_more_examples_than_memory_holds_are_refused_before_they_are_drawn() -> None:
    with pytest.raises(CircuitError, match=r"a search with .* would take about .* GiB"):
        discover(made("gpt2"), TASK, examples=10**8)
