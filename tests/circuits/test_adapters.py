"""Foreign models: the walk against the model's own forward pass and attentions."""

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from hopscope.circuits import Ablation, Ablator, adapter_of, exam_of, patterns
from hopscope.circuits.adapters.blocks import prove
from hopscope.configs import KHop
from hopscope.errors import CircuitError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers")

TASK = KHop(hops=1, length=10, alphabet=6)
SIZE = {"vocab_size": 7, "attn_implementation": "eager", "bos_token_id": 0, "eos_token_id": 0}
LLAMA = {
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "hidden_size": 32, "intermediate_size": 40, **SIZE,
}  # fmt: skip


def gpt2(**more: object) -> Any:
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=16, n_positions=12, **SIZE, **more)
    return transformers.GPT2LMHeadModel(config)


def mistral(**more: object) -> Any:
    return transformers.MistralForCausalLM(transformers.MistralConfig(**LLAMA, **more))


MAKERS = {
    "gpt2": gpt2,
    "gpt2 unscaled": lambda: gpt2(scale_attn_weights=False),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
    "mistral": mistral,
    "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**LLAMA)),
}


def grown(made: Any, factor: int = 4) -> Any:
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(factor)
    return made.eval()


@pytest.fixture(params=MAKERS)
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    made: nn.Module = grown(MAKERS[request.param]())
    return made


@torch.no_grad()
def test_attention_and_losses_are_those_of_the_model(model: Any) -> None:
    exam, subject = exam_of(TASK, 5), adapter_of(model)
    expected = model(exam.inputs, output_attentions=True)
    for found, wanted in zip(patterns(subject, exam.inputs), expected.attentions, strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)
    losses = Ablator(subject, exam).losses([Ablation()])[0]
    assert torch.allclose(losses, exam.losses(expected.logits), atol=1e-4)


@torch.no_grad()
def test_in_halves_rounding_is_taken_and_noise_is_refused(model: Any) -> None:
    """The noise is up to 9 % of the largest output."""
    inputs = exam_of(TASK, 4).inputs
    for precision in (torch.bfloat16, torch.float16):
        subject = adapter_of(model.to(precision))
        x = subject.enter(inputs)  # type: ignore[union-attr]
        expected = model(inputs).logits
        size, draw = 0.09 * float(expected.abs().max()), torch.Generator().manual_seed(0)
        noise = torch.empty(expected.shape).uniform_(-size, size, generator=draw)
        with pytest.raises(
            CircuitError, match="the adapter for it is off by .*; use CallbackModel"
        ):
            prove(subject, x, expected + noise.to(precision), "it")  # type: ignore[arg-type]


def test_what_an_adapter_does_not_know_is_refused() -> None:
    torch.manual_seed(0)
    inputs = exam_of(TASK, 4).inputs
    slides, short = grown(mistral(sliding_window=4)), inputs[:, :4]
    adapter_of(slides).enter(short)  # type: ignore[union-attr]  # on four positions it is known
    strange = grown(gpt2(scale_attn_by_inverse_layer_idx=True), 9)
    long, wide = KHop(hops=1, alphabet=6, length=13), KHop(hops=1, alphabet=40, length=8)
    for model, asked, line in (
        (strange, inputs, r"for GPT2LMHeadModel is off by .*; use CallbackModel"),
        (slides, inputs, "for MistralForCausalLM is off by .*; use CallbackModel"),
        (gpt2(), exam_of(long, 64).inputs, "are 13 tokens long; the model has 12 pl"),
        (gpt2(), exam_of(wide, 64).inputs, r"have the token \d+; the model knows 0 … \d+"),
        (nn.Linear(2, 2), inputs, "there is no adapter for a Linear; there are"),
    ):
        with pytest.raises(CircuitError, match=line):
            adapter_of(model).enter(asked)  # type: ignore[union-attr]


@torch.no_grad()
def test_what_layers_see_and_heads_add_is_what_the_model_computes(model: Any) -> None:
    subject, inputs = adapter_of(model), exam_of(TASK, 3).inputs
    x, other = subject.enter(inputs), subject.enter(inputs.flip(1))
    every, length = range(subject.heads), x.shape[1]
    looks = subject.look(1, x, length, every)
    assert torch.equal(subject.match(1, x, x, length, every), looks)
    assert torch.allclose(subject.look(1, x, 3, [1]), looks[:, 1:2, -3:], atol=1e-6)
    # Queries of one stream, keys of the other: the last row's query, all others' keys.
    crossed = subject.match(0, x, other, 1, every)
    assert not torch.allclose(crossed, subject.look(0, x, 1, every), atol=1e-3)
    mine = torch.cat((other[:, :-1], x[:, -1:]), 1)  # of the queries, only the last one counts
    assert torch.allclose(crossed, subject.match(0, mine, other, 1, every), atol=1e-6)
    mixed = subject.look(0, x, length, every) @ subject.values(0, x)
    nothing = subject.added(0, torch.zeros_like(mixed))
    alone = torch.eye(subject.heads)[:, None, :, None, None] * mixed
    head_by_head = sum(subject.added(0, its) - nothing for its in alone)
    assert torch.allclose(head_by_head, subject.added(0, mixed) - nothing, atol=1e-4)
    last = model(inputs, output_hidden_states=True).hidden_states[-1]
    for layer in range(subject.layers):
        pattern = subject.look(layer, x, length, every)
        x = subject.write(layer, x, pattern @ subject.values(layer, x))
    assert torch.allclose(subject.seen(subject.layers, x), last, atol=1e-4)
