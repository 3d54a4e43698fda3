"""Foreign models: the walk against the model's own forward pass and attentions."""

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import (
    Ablation,
    Ablator,
    Dissected,
    Mechanism,
    Whole,
    exam_of,
    patterns,
    subject_of,
)
from hopscope.circuits.layer_steps import prove
from hopscope.circuits.mechanism import ITSELF, UNIFORM
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


MAKERS = {
    "gpt2": gpt2,
    "gpt2 unscaled": lambda: gpt2(scale_attn_weights=False),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
    "mistral": lambda: transformers.MistralForCausalLM(transformers.MistralConfig(**LLAMA)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**LLAMA)),
}


@pytest.fixture(params=MAKERS)
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    made: nn.Module = MAKERS[request.param]()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(4)
    return made.eval()


def test_the_walk_sees_the_attention_that_the_model_reports(model: Any) -> None:
    inputs = exam_of(TASK, 5).inputs
    with torch.no_grad():
        expected = model(inputs, output_attentions=True).attentions
    for found, wanted in zip(patterns(subject_of(model), inputs), expected, strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)


def test_untouched_the_walk_computes_what_the_model_computes(model: Any) -> None:
    exam = exam_of(TASK, 5)
    with torch.no_grad():
        expected = exam.losses(model(exam.inputs).logits)
    assert torch.allclose(
        Ablator(subject_of(model), exam).losses([Ablation()])[0], expected, atol=1e-4
    )


def test_attending_to_itself_alone_forgets_the_past(model: Any) -> None:
    subject, exam = subject_of(model), exam_of(TASK, 4)
    heads = {(n, h): Mechanism(rest=ITSELF) for n in range(2) for h in range(subject.heads)}
    other = exam.inputs.clone()
    other[:, :-1] = (other[:, :-1] + 1) % TASK.alphabet  # only the past differs
    ablator = Ablator(subject, exam)
    forgetful = ablator.losses([Ablation.of(heads), Ablation()])
    changed = Ablator(subject, type(exam)(other, exam.roles, exam.table, exam.losses, exam.guess))
    again = changed.losses([Ablation.of(heads), Ablation()])
    assert torch.allclose(forgetful[0], again[0], atol=1e-4)
    assert not torch.allclose(forgetful[1], again[1], atol=1e-2)


def test_a_configuration_that_the_adapter_does_not_know_is_refused() -> None:
    torch.manual_seed(0)
    strange = gpt2(scale_attn_by_inverse_layer_idx=True)
    with torch.no_grad():
        for parameter in strange.parameters():
            parameter.mul_(9)
    with pytest.raises(CircuitError, match=r"for GPT2LMHeadModel is off by .*; use Whole"):
        subject_of(strange).enter(exam_of(TASK, 4).inputs)  # type: ignore[union-attr]


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_in_halves_rounding_is_taken_and_noise_is_refused(
    model: Any, precision: torch.dtype
) -> None:
    """The noise is up to 9 % of the largest output."""
    inputs = exam_of(TASK, 4).inputs
    subject = subject_of(model.to(precision))
    x = subject.enter(inputs)  # type: ignore[union-attr]
    expected = model(inputs).logits
    size, draw = 0.09 * float(expected.abs().max()), torch.Generator().manual_seed(0)
    noise = torch.empty(expected.shape).uniform_(-size, size, generator=draw)
    with pytest.raises(CircuitError, match="the adapter for it is off by .*; use Whole"):
        prove(subject, x, expected + noise.to(precision), "it")


def test_longer_examples_are_proved_anew() -> None:
    """A window of four positions: on as many, and no more, it is what the adapter knows."""
    torch.manual_seed(0)
    config = transformers.MistralConfig(**LLAMA, sliding_window=4)
    slides = transformers.MistralForCausalLM(config)
    with torch.no_grad():
        for parameter in slides.parameters():
            parameter.mul_(4)
    subject, inputs = subject_of(slides), exam_of(TASK, 4).inputs
    subject.enter(inputs[:, :4])  # type: ignore[union-attr]
    with pytest.raises(CircuitError, match="for MistralForCausalLM is off by .*; use Whole"):
        subject.enter(inputs)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("task", "line"),
    [
        (
            KHop(hops=1, alphabet=TASK.alphabet, length=13),
            "are 13 tokens long; the model has 12 pl",
        ),
        (KHop(hops=1, alphabet=40, length=8), r"have the token \d+; the model knows 0 … \d+"),
    ],
)
def test_examples_that_the_model_has_no_room_for_are_refused(task: KHop, line: str) -> None:
    with pytest.raises(CircuitError, match=line):
        subject_of(gpt2()).enter(exam_of(task, 64).inputs)  # type: ignore[union-attr]


def test_a_model_without_adapter_is_named_with_those_there_are() -> None:
    with pytest.raises(CircuitError, match="there is no adapter for a Linear; there are"):
        subject_of(nn.Linear(2, 2))


def silent(_: Tensor, attention: object) -> Tensor:
    """A module with fused kernels: nobody sees its attention."""
    return torch.zeros(3, 1, 7)


def half_spoken(inputs: Tensor, attention: Any) -> Tensor:
    """A module that returns no attention where it was asked to."""
    attention(0, None)
    return torch.zeros(len(inputs), 1, 7)


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (silent, r"handed out by layers \[\], expected 0 … 1: fused kernels \(sdpa, flash\)"),
        (half_spoken, r"layer 0 handed out None as attention, expected \(2, 2, 10, 10\)"),
    ],
)
def test_a_module_that_keeps_its_attention_is_refused(forward: Any, message: str) -> None:
    ablator = Ablator(Whole(forward, nn.Identity(), (2, 2)), exam_of(TASK, 3))
    with pytest.raises(CircuitError, match=message):
        ablator.losses([Ablation.of({(0, 0): Mechanism(rest=UNIFORM)})])


def test_layers_hand_out_fewer_rows_when_fewer_are_read(model: Any) -> None:
    subject = subject_of(model)
    x = subject.enter(exam_of(TASK, 2).inputs)  # type: ignore[union-attr]
    every = subject.look(1, x, x.shape[1], range(subject.heads))  # type: ignore[union-attr]
    assert torch.allclose(subject.look(1, x, 3, range(subject.heads)), every[:, :, -3:], atol=1e-6)  # type: ignore[union-attr]
    some = subject.look(1, x, 3, [1])  # type: ignore[union-attr]
    assert torch.allclose(some, every[:, 1:2, -3:], atol=1e-6)


def test_what_layers_see_and_heads_add_is_what_the_model_computes(model: Any) -> None:
    subject, inputs = subject_of(model), exam_of(TASK, 3).inputs
    assert isinstance(subject, Dissected)
    x, other = subject.enter(inputs), subject.enter(inputs.flip(1))
    every = range(subject.heads)
    assert torch.equal(
        subject.match(1, x, x, x.shape[1], every), subject.look(1, x, x.shape[1], every)
    )
    mixed = subject.look(0, x, x.shape[1], every) @ subject.values(0, x)
    nothing = torch.zeros_like(mixed)
    head_by_head = torch.zeros_like(x)
    for head in every:
        alone = nothing.clone()
        alone[:, head] = mixed[:, head]
        head_by_head += subject.added(0, alone) - subject.added(0, nothing)
    expected = subject.added(0, mixed) - subject.added(0, nothing)
    assert torch.allclose(head_by_head, expected, atol=1e-4)
    # Queries of one stream, keys of the other: the last row's query, all others' keys.
    crossed = subject.match(0, x, other, 1, every)
    assert not torch.allclose(crossed, subject.look(0, x, 1, every), atol=1e-3)
    mine = torch.cat((other[:, :-1], x[:, -1:]), 1)  # of the queries, only the last one counts
    keys = subject.match(0, mine, other, 1, every)
    assert torch.allclose(crossed, keys, atol=1e-6)
    with torch.no_grad():
        last = model(inputs, output_hidden_states=True).hidden_states[-1]
        for layer in range(subject.layers):
            pattern = subject.look(layer, x, x.shape[1], every)
            x = subject.write(layer, x, pattern @ subject.values(layer, x))
    assert torch.allclose(subject.seen(subject.layers, x), last, atol=1e-4)
