"""Decoders of transformers: the engine against the models' own passes, attention and hooks."""

import warnings
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from families import FAMILIES, TOKENS, made
from slow import CHANGES, hooked
from torch import Tensor, nn

from hopscope.circuits import (
    Ablation,
    Ablator,
    Pattern,
    adapter_of,
    estimate_tables,
    examples_of,
    patterns,
    repeated_tokens,
)
from hopscope.circuits.adapters import DecoderAdapter
from hopscope.circuits.attention import attended
from hopscope.circuits.engine import Brought, Heads, as_model, forward, record, weights_digest
from hopscope.circuits.pattern import Source
from hopscope.circuits.probing import probe
from hopscope.configs import KHop
from hopscope.errors import CircuitError, RunWarning

LENGTH, LAYER, HEAD = 12, 1, 2
TASK = KHop(hops=1, length=10, alphabet=6)


@pytest.fixture
def tokens() -> Tensor:
    return torch.randint(1, TOKENS, (3, LENGTH), generator=torch.Generator().manual_seed(0))


@cache
def adapted(family: str) -> tuple[Any, DecoderAdapter]:
    """A model of a family and its adapter, neither of which a test changes."""
    model = made(family)
    return model, DecoderAdapter(model)


def close(found: Tensor, expected: Tensor) -> bool:
    """Equal up to rounding of the largest number."""
    return torch.allclose(found, expected, rtol=0, atol=2e-5 * float(expected.abs().max()))


def output_of(model: Any, layer: int) -> nn.Module:
    """The projection in which the attention of a layer ends."""
    attention = next(
        each for each in model.modules() if getattr(each, "layer_idx", None) == layer
        and any(type(its).__name__ in {"Linear", "Conv1D"} for its in each.children())
    )  # fmt: skip
    names = {"c_proj", "o_proj", "dense", "out_proj"}
    return next(its for name, its in attention.named_children() if name in names)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_the_engine_computes_what_the_model_computes(family: str, tokens: Tensor) -> None:
    model, adapter = adapted(family)
    expected = model(tokens, output_attentions=True, use_cache=False)
    its = record(adapter, tokens)
    assert close(adapter.unembed(its.streams[-1]), expected.logits)
    for found, wanted in zip(its.weights, expected.attentions, strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)

    def edit(x: Tensor) -> Tensor:
        seen.append(x)
        parts = x.unflatten(-1, (adapter.heads, -1)).clone()
        parts[..., HEAD, :] = parts[..., HEAD, :].mean(0)
        return parts.flatten(-2)

    # An ablation by hooks, which no code of ours knows; and the same from the middle.
    seen: list[Tensor] = []
    with hooked(output_of(model, LAYER), edit):
        wanted = model(tokens, use_cache=False).logits
    assert close(its.brought[LAYER].transpose(1, 2).flatten(2), seen[0])
    assert not torch.allclose(wanted, expected.logits, atol=1e-2 * float(wanted.abs().max()))

    def attend(layer: int, heads: Heads) -> Brought:
        brought = as_model(layer, heads).clone()
        if layer == LAYER:
            brought[:, HEAD] = brought[:, HEAD].mean(0)
        return brought

    for start in (0, LAYER):
        ablated = forward(adapter, its.streams[start], attend, start)
        assert close(adapter.unembed(ablated), wanted)


@pytest.mark.parametrize(
    ("family", "windows"),
    [("mistral", {0: 4, 1: 4}), ("gemma2", {0: 4}), ("gpt_oss", {0: 4}), ("llama", {})],
)
def test_even_attention_is_over_what_a_layer_sees(family: str, windows: dict[int, int]) -> None:
    # A llama ignores the window that its config names.
    model = made(family, vocab_size=7, sliding_window=4)
    adapter, examples = DecoderAdapter(model), examples_of(TASK, 8)
    length = examples.length
    even = Ablation.of({(layer, HEAD): Pattern() for layer in range(2)})
    back = torch.arange(length)[:, None] - torch.arange(length)
    rows = {}
    for layer, pattern in enumerate(attended(adapter, examples, even).weights):
        seen = ((back >= 0) & (back < windows.get(layer, length))).float()
        rows[layer] = seen / seen.sum(-1, keepdim=True)
        assert torch.allclose(pattern[:, HEAD], rows[layer].expand(8, -1, -1))

    def attend(layer: int, heads: Heads) -> Brought:
        weights = heads.weights().clone()
        weights[:, HEAD] = rows[layer]
        return weights @ heads.values

    expected = adapter.unembed(forward(adapter, adapter.embed(examples.inputs), attend))
    losses = Ablator(adapter, examples).losses([even])[0]
    assert torch.allclose(losses, examples.losses_of(expected[:, -examples.read :]), atol=1e-5)


def test_a_table_by_token_is_the_mean_over_pairs_that_a_layer_sees() -> None:
    adapter, examples = DecoderAdapter(made("gemma2", vocab_size=7)), examples_of(TASK, 8)
    tables, tokens = estimate_tables(adapter, examples), examples.inputs
    back = torch.arange(examples.length)[:, None] - torch.arange(examples.length)
    for layer, pattern in enumerate(patterns(adapter, tokens)):
        seen = (back >= 0) & (back < {0: 4}.get(layer, examples.length))
        table = tables[Source("token", head=(layer, HEAD))]
        for one, other in product(range(6), repeat=2):
            pairs = (tokens[:, :, None] == one) & (tokens[:, None] == other) & seen
            mean = float(pattern[:, HEAD][pairs].sum() / max(1, int(pairs.sum())))
            assert float(table[one, other]) == pytest.approx(mean, abs=1e-4)


def test_windows_are_the_same_in_transformer_lens(tmp_path: Path) -> None:
    model, examples = made("gemma2", vocab_size=7), examples_of(TASK, 8)
    model.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("transformer_lens")
        from transformer_lens.model_bridge import TransformerBridge

        bridge = TransformerBridge.boot_transformers(str(tmp_path), dtype=torch.float32)
        even = [Ablation(), Ablation.of({(0, HEAD): Pattern()})]
        ours, theirs = (Ablator(each, examples).losses(even) for each in (model, bridge))
    assert torch.allclose(ours, theirs, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_heads_and_positions_are_computed_on_their_own(family: str, tokens: Tensor) -> None:
    model, adapter = adapted(family)
    its = record(adapter, tokens)
    x, other, brought = its.streams[LAYER], its.streams[LAYER].flip(1), its.brought[LAYER]
    whole = adapter.finish(LAYER, x, brought)
    for part in (slice(-1, None), slice(3, 8)):
        assert close(adapter.finish(LAYER, x[:, part], brought[:, :, part]), whole[:, part])
    # Positions of all examples in one row, as of many ablations at once.
    row = brought.transpose(1, 2).flatten(0, 1).transpose(0, 1)[None]
    assert close(adapter.finish(LAYER, x.flatten(0, 1)[None], row)[0], whole.flatten(0, 1))
    heads = adapter.project(LAYER, x)
    assert close(heads.weights(3, [HEAD]), its.weights[LAYER][:, [HEAD], -3:])
    crossed = heads.weights(1, keys=adapter.project(LAYER, other))
    mine = torch.cat((other[:, :-1], x[:, -1:]), 1)  # the last query is x's, and so is its key
    row_of_mine = adapter.project(LAYER, mine).weights(1, keys=adapter.project(LAYER, other))
    assert close(crossed, row_of_mine)
    assert not torch.allclose(crossed, heads.weights(1), atol=1e-3)

    nothing = adapter.added(LAYER, torch.zeros_like(brought))
    alone = torch.eye(adapter.heads)[:, None, :, None, None] * brought
    each = sum(adapter.added(LAYER, one) - nothing for one in alone)
    added = adapter.added(LAYER, brought)
    assert close(each, added - nothing)  # type: ignore[arg-type]
    if name := FAMILIES[family][1]:
        seen: list[Tensor] = []
        module = next(its for key, its in model.named_modules() if key.endswith(f"{LAYER}.{name}"))
        with hooked(module, lambda stream: seen.append(stream) or stream):
            model(tokens, use_cache=False)
        assert close(x + added, seen[0].view_as(x))


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_a_pass_goes_on_after_the_positions_of_another(family: str, tokens: Tensor) -> None:
    (_, adapter), last = adapted(family), 3
    x = adapter.embed(tokens)
    known = adapter.project(LAYER, x)
    variants = x.repeat(2, 1, 1)  # two variants of every example: rows are repeated as a whole
    noise = torch.randn(variants[:, -last:].shape, generator=torch.Generator().manual_seed(1))
    variants[:, -last:] += noise
    found = adapter.project_after(LAYER, variants[:, -last:], known)
    expected = adapter.project(LAYER, variants)
    assert close(found.values, expected.values)
    assert close(found.weights(last), expected.weights(last))
    assert close(found.weights(1, [HEAD]), expected.weights(1, [HEAD]))
    assert not torch.allclose(found.weights(last)[: len(x)], known.weights(last), atol=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("family", ["gpt2", "gemma2", "gpt_oss"])
def test_many_ablations_in_one_walk_are_those_of_single_passes(family: str) -> None:
    examples, adapter = examples_of(TASK, 5), adapter_of(made(family, vocab_size=7))
    several = [Ablation(), *(Ablation.of({(0, 1): its, (1, HEAD): its}) for its in CHANGES)]
    several += [Ablation.of({(1, 0): its}) for its in CHANGES]
    found = Ablator(adapter, examples).losses(several)
    for losses, ablation in zip(found, several, strict=True):
        expected = examples.losses_of(
            adapter.unembed(attended(adapter, examples, ablation).streams[-1])
        )
        assert torch.allclose(losses, expected, atol=1e-4), ablation
    assert len({round(float(each.mean()), 4) for each in found}) > len(CHANGES)


@torch.no_grad()
def test_in_bfloat16_answers_are_distributed_as_the_models(tokens: Tensor) -> None:
    for family in ("gpt2", "llama", "gemma2"):
        model = made(family).to(torch.bfloat16)
        adapter = DecoderAdapter(model)
        found = adapter.unembed(forward(adapter, adapter.embed(tokens))).float().softmax(-1)
        expected = model(tokens, use_cache=False).logits.float().softmax(-1)
        assert float((found - expected).abs().sum(-1).mean()) / 2 < 0.02, family


@torch.no_grad()
def test_the_model_that_was_given_stays_as_it_was(tokens: Tensor) -> None:
    """Also one in training, whose dropout is none of the adapter's business."""
    model = made("gpt2", attn_pdrop=0.5, resid_pdrop=0.5, embd_pdrop=0.5)
    model.set_attn_implementation("sdpa")
    before, digest = model(tokens).logits, weights_digest(model)
    model.train()
    adapter = DecoderAdapter(model)
    its = record(adapter, tokens)
    assert close(adapter.unembed(its.streams[-1]), before)
    adapter.added(0, its.brought[0])
    assert model.training
    assert model.config._attn_implementation == "sdpa"
    assert adapter.digest() == digest == weights_digest(model)
    assert torch.equal(model.eval()(tokens).logits, before)
    with torch.no_grad():  # weights are shared, and no copy
        model.transformer.wte.weight.add_(0.5)
    assert close(adapter.unembed(forward(adapter, adapter.embed(tokens))), model(tokens).logits)


def test_a_model_that_keeps_activations_or_returns_tuples_is_taken(tokens: Tensor) -> None:
    """What a hook of another object or the module itself keeps has a history, and no copy."""

    class Recorder:
        def __init__(self) -> None:
            self.kept: dict[str, Tensor] = {}

        def hook(self, _: nn.Module, __: Any, out: Tensor) -> None:
            self.kept["out"] = out

    model, its = made("gpt2", return_dict=False).transformer, Recorder()
    model.h[0].mlp.register_forward_hook(its.hook)
    (model.seen,) = model(tokens, use_cache=False)
    adapter, kept = DecoderAdapter(model), its.kept["out"]
    found = adapter.unembed(forward(adapter, adapter.embed(tokens)))
    assert close(found.detach(), model.seen.detach())
    assert its.kept["out"] is kept
    assert not model.config.return_dict


def test_a_compiled_model_is_the_model(tokens: Tensor) -> None:
    model = made("gpt2")
    compiled = torch.compile(model, backend="eager")
    assert adapter_of(compiled).module is model  # type: ignore[arg-type]


def test_examples_that_a_decoder_cannot_read_are_refused(tokens: Tensor) -> None:
    adapter = DecoderAdapter(made("gpt2", pad_token_id=0))
    left, right = tokens.clone(), tokens.clone()
    left[0, :2] = right[0, -2:] = 0
    for inputs, line in (
        (torch.randn(3, LENGTH, 8), "this model takes tokens"),
        (tokens + 10, "the model knows 0 … 63"),
        (tokens - 9, "have tokens -"),
        (tokens.repeat(1, 3), "the model has 24 positions"),
        (left, "different numbers of token 0.*set pad_token_id"),
    ):
        with pytest.raises(CircuitError, match=line):
            adapter.embed(inputs)
    adapter.embed(right)
    left[:, :2] = 0
    adapter.embed(left)  # as many in front of every example
    adapter.embed(torch.cat((left, left.flip(1))))  # here 0 is a symbol like others


def test_padding_with_the_token_of_the_end_warns_once(tokens: Tensor) -> None:
    """Also if lengths differ by one and texts end in it; a few examples begin with it by chance."""
    adapter = DecoderAdapter(made("gpt2", pad_token_id=0, eos_token_id=[0, 70]))
    tokens[0, 0] = tokens[1, -1] = 0
    adapter.embed(tokens)
    several = tokens.repeat(3, 1)
    with pytest.warns(RunWarning, match="different numbers of token 0.*set eos_token_id"):
        adapter.embed(several)
    adapter.embed(several)


def test_an_adapter_of_a_model_that_was_changed_is_refused(tokens: Tensor) -> None:
    def replaced(model: Any) -> None:
        model.model.layers[0].self_attn.q_proj = nn.Linear(32, 32, bias=False)

    for change in (replaced, lambda model: model.double()):
        adapter = DecoderAdapter(made("llama"))
        adapter.embed(tokens)
        change(adapter.model)
        with pytest.raises(CircuitError, match="the model was changed .* while it was"):
            adapter.embed(tokens)


def test_a_decoder_without_its_head_answers_in_vectors_that_a_loss_of_its_own_reads() -> None:
    model, task = made("gpt2").transformer, repeated_tokens(TOKENS, length=4)
    with pytest.raises(CircuitError, match=r"with 0 … 31, .*is its head loaded"):
        Ablator(model, examples_of(task, 4)).losses([Ablation()])
    task.loss = lambda streams, targets: streams[..., 0] - targets
    Ablator(model, examples_of(task, 4)).losses([Ablation()])


@torch.no_grad()
def test_a_decoder_that_computes_something_else_is_refused(tokens: Tensor) -> None:
    """Also one that does so on longer examples alone."""
    model = made("gpt2")
    adapter = DecoderAdapter(model)
    adapter.embed(tokens[:, :6])

    def scaled(_: Any, __: Any, out: Any) -> Any:
        out.logits = out.logits * (1.01 if out.logits.shape[1] > 6 else 1)
        return out

    adapter.plain.register_forward_hook(scaled)
    adapter.embed(tokens[:, :6])
    for _ in range(2):  # a model that was refused stays refused
        with pytest.raises(CircuitError, match="for GPT2LMHeadModel is off by 9.*; use CallbackM"):
            adapter.embed(tokens)


def test_a_head_that_is_wider_than_the_model_has_positions_is_probed() -> None:
    task = KHop(hops=1, alphabet=4, length=16)
    model = made("gpt2", vocab_size=5, n_positions=16, n_embd=32, n_layer=1, n_head=1)
    found = probe(model, task, 160)
    assert np.isfinite(found.heads.own).all()
