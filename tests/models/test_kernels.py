"""The kernels in C, held to what they replace, written out in float64."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from hopscope.configs import Model, Retrieval
from hopscope.models import Transformer, compiled, kernels
from hopscope.tasks import Batch, examples, sampler_of

ROUNDING = 2**-8  # of bf16, relative
WIDTHS = st.sampled_from([16, 32, 48, 128])
needs_kernels = pytest.mark.skipif(
    compiled.loaded() is None, reason="not compiled, or a processor without AVX-512 BF16"
)


def numbers(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape) * scale).bfloat16()


def off(ours: Tensor | None, exact: Tensor | None) -> float:
    """The largest error, in roundings of the largest number (of 0.01 where that is smaller)."""
    assert ours is not None
    assert exact is not None
    assert ours.dtype == torch.bfloat16
    assert ours.shape == exact.shape
    largest = exact.detach().abs().max().clamp_min(0.01)
    return float((ours.detach().double() - exact.detach()).abs().max() / (ROUNDING * largest))


def hold(fast: Callable[..., Tensor], slow: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Value and gradients of `fast` in bf16 are those of `slow` in float64."""
    near = [x.clone().requires_grad_() for x in inputs]
    exact = [x.double().requires_grad_() for x in inputs]
    value, truth = fast(*near), slow(*exact)
    assert off(value, truth) < 3
    slope = numbers(*truth.shape)
    value.backward(slope)
    truth.backward(slope.double())
    for ours, theirs in zip(near, exact, strict=True):
        assert off(ours.grad, theirs.grad) < 3


def looked_up(query: Tensor, key: Tensor, value: Tensor, heads: int, causal: bool) -> Tensor:
    """Attention, head by head and query by query."""
    width, before = query.shape[-1] // heads, key.shape[-2] - query.shape[-2]
    rows = []
    for i in range(query.shape[-2]):
        seen = before + i + 1 if causal else key.shape[-2]
        parts = []
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            scores = key[..., :seen, part] @ query[..., i, part, None] * width**-0.5
            parts.append((scores.softmax(-2) * value[..., :seen, part]).sum(-2))
        rows.append(torch.cat(parts, -1))
    return torch.stack(rows, -2)


@needs_kernels
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 128), st.integers(1, 3), WIDTHS, st.booleans(), st.data())
def test_attention_from_all_positions(
    seq: int, heads: int, width: int, causal: bool, data: st.DataObject
) -> None:
    fleet = data.draw(st.sampled_from([(), (2,)]))
    torch.manual_seed(seq)
    joined = numbers(*fleet, data.draw(st.integers(1, 3)), seq, 3 * heads * width)
    hold(
        lambda x: kernels.attend(x, None, heads, causal),
        lambda x: looked_up(*x.chunk(3, -1), heads, causal),
        joined,
    )


@needs_kernels
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 128), st.integers(1, 3), WIDTHS, st.booleans(), st.data())
def test_attention_from_the_last_positions(
    seq: int, heads: int, width: int, causal: bool, data: st.DataObject
) -> None:
    read = data.draw(st.integers(1, seq))
    torch.manual_seed(seq)
    hold(
        lambda x, query: kernels.attend(x, query, heads, causal),
        lambda x, query: looked_up(query, *x.chunk(2, -1), heads, causal),
        numbers(2, seq, 2 * heads * width),
        numbers(2, read, heads * width),
    )


@needs_kernels
def test_attention_bears_large_scores() -> None:
    torch.manual_seed(0)
    joined = numbers(2, 20, 48, scale=60)
    out = kernels.attend(joined, None, 1, causal=True)
    assert off(out, looked_up(*joined.double().chunk(3, -1), 1, causal=True)) < 3


@needs_kernels
@pytest.mark.parametrize("fleet", [(), (3,)])
@pytest.mark.parametrize("ins", [64, 192])
@pytest.mark.parametrize("outs", [64, 128])
def test_an_affine_map(fleet: tuple[int, ...], ins: int, outs: int) -> None:
    torch.manual_seed(0)
    hold(
        kernels.affine,
        lambda x, weight, bias: x @ weight.mT.unsqueeze(-3) + bias[..., None, None, :],
        numbers(*fleet, 5, 27, ins),
        numbers(*fleet, outs, ins, scale=ins**-0.5),
        numbers(*fleet, outs),
    )


@needs_kernels
def test_views_are_as_good_as_copies() -> None:
    torch.manual_seed(0)
    x, weight, bias = numbers(5, 27, 128)[..., 64:], numbers(64, 128).mT, numbers(256)[::2]
    copies = (each.contiguous() for each in (x, weight, bias))
    assert torch.equal(kernels.affine(x, weight, bias), kernels.affine(*copies))
    up, down, shift = numbers(64, 128).mT, numbers(128, 64).mT, numbers(64)
    mlp = kernels.mlp(x, (up, bias), (down, shift))
    copied = kernels.mlp(
        x.contiguous(), (up.contiguous(), bias.contiguous()), (down.contiguous(), shift)
    )
    assert torch.equal(mlp, copied)


@needs_kernels
@pytest.mark.parametrize("fleet", [(), (3,)])
def test_a_norm(fleet: tuple[int, ...]) -> None:
    torch.manual_seed(0)

    def slow(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
        unit = functional.layer_norm(x, (48,), eps=1e-5)
        return unit * gain[..., None, None, :] + shift[..., None, None, :]

    inputs = numbers(*fleet, 40, 7, 48, scale=3), numbers(*fleet, 48), numbers(*fleet, 48)
    hold(lambda *x: kernels.norm(*x, 1e-5), slow, *inputs)


@needs_kernels
@pytest.mark.parametrize("fleet", [(), (2,)])
def test_an_mlp(fleet: tuple[int, ...]) -> None:
    torch.manual_seed(0)

    def slow(x: Tensor, up: Tensor, a: Tensor, down: Tensor, b: Tensor) -> Tensor:
        hidden = functional.gelu(x @ up.mT.unsqueeze(-3) + a[..., None, None, :])
        return hidden @ down.mT.unsqueeze(-3) + b[..., None, None, :]

    hold(
        lambda x, up, a, down, b: kernels.mlp(x, (up, a), (down, b)),
        slow,
        numbers(*fleet, 10, 13, 64),
        numbers(*fleet, 256, 64, scale=0.2),
        numbers(*fleet, 256),
        numbers(*fleet, 64, 256, scale=0.1),
        numbers(*fleet, 64),
    )


def model_and_batch(models: tuple[int, ...]) -> tuple[Transformer, Batch]:
    task = Retrieval(hops=2, chains=2)
    sampler = sampler_of(task)
    config = Model(layers=2, heads=2, d_model=64, init="fan-in")
    model = Transformer(config, sampler.interface(), models=models)
    if not models:
        model = Transformer.seeded(config, sampler.interface(), 0)
    batch = examples(sampler, 0, torch.arange(8 * max(1, len(models))))
    return model.bfloat16(), batch.stacked(len(models)) if models else batch


@needs_kernels
@pytest.mark.parametrize("models", [(), (0, 1)])
def test_a_transformer_is_the_same_with_and_without(
    models: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = model_and_batch(models)
    exact, _ = model_and_batch(models)
    exact = exact.double()
    outputs, truth = model(batch.inputs), exact(batch.inputs.double())
    outputs.square().sum().backward()
    truth.square().sum().backward()
    monkeypatch.setattr(compiled, "loaded", lambda: None)
    plain, _ = model_and_batch(models)
    without = plain(batch.inputs)
    without.square().sum().backward()
    assert not torch.equal(outputs, without)  # else both took the same way
    assert off(outputs, truth) < max(4, 1.5 * off(without, truth))
    triples = zip(model.parameters(), plain.parameters(), exact.parameters(), strict=True)
    for ours, torchs, true in triples:
        assert off(ours.grad, true.grad) < max(4, 1.5 * off(torchs.grad, true.grad))


@needs_kernels
def test_the_result_does_not_depend_on_threads() -> None:
    def gradients(threads: int) -> list[Tensor]:
        torch.set_num_threads(threads)
        model, batch = model_and_batch(())
        model(batch.inputs).square().sum().backward()
        return [p.grad for p in model.parameters() if p.grad is not None]

    before = torch.get_num_threads()
    try:
        one, three = gradients(1), gradients(3)
    finally:
        torch.set_num_threads(before)
    assert len(one) == len(three) > 0
    assert all(torch.equal(a, b) for a, b in zip(one, three, strict=True))


@needs_kernels
def test_what_they_are_not_made_for_is_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = numbers(1, 128, 64)
    assert kernels.suit(fits)
    assert kernels.suit_attention(fits, 16)
    assert not kernels.suit(fits.float())
    assert not kernels.suit(fits, torch.ones(64))
    assert not kernels.suit(numbers(1, 4, 40))
    assert not kernels.suit_attention(numbers(1, 129, 64), 16)
    assert not kernels.suit_attention(fits, 8)
    assert not kernels.suit_attention(fits, 144)
    weight, bias = numbers(128, 64), numbers(128)
    assert kernels.suit_affine(fits, weight, bias)
    assert not kernels.suit_affine(fits, numbers(8, 64), numbers(8))
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert not kernels.suit_affine(fits, weight, bias)


@needs_kernels
def test_what_does_not_fit_together_is_left_to_torch() -> None:
    x, weight, bias = numbers(2, 8, 64), numbers(128, 64), numbers(128)
    assert not kernels.suit_affine(x[..., :48], weight, bias)
    assert not kernels.suit_affine(x, weight, bias.float())
    assert not kernels.suit_affine(x, weight, bias[:64])
    assert not kernels.suit_affine(x[None], weight, bias)
    assert not kernels.suit_affine(x[0], weight, bias)
    assert not kernels.suit_affine(x[None], weight.expand(3, -1, -1), bias.expand(3, -1))
    up, down = (weight, bias), (numbers(64, 128), numbers(64))
    assert kernels.suit_mlp(x, up, down)
    assert not kernels.suit_mlp(x, up, up)
    assert not kernels.suit_mlp(x, up, (down[0], down[1].float()))
    assert kernels.suit_norm(x, numbers(64), numbers(64))
    assert not kernels.suit_norm(x, numbers(128), numbers(128))
    assert not kernels.suit_norm(x, numbers(64), torch.ones(64))
    assert not kernels.suit_norm(x[None], numbers(3, 64), numbers(3, 64))


@needs_kernels
@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64])
def test_the_default_dtype_does_not_matter(default: torch.dtype) -> None:
    def gradients() -> list[Tensor]:
        for parameter in model.parameters():
            parameter.grad = None
        model(batch.inputs).square().sum().backward()
        return [p.grad for p in model.parameters() if p.grad is not None]

    model, batch = model_and_batch(())
    usual = gradients()
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        other = gradients()
    finally:
        torch.set_default_dtype(before)
    assert len(usual) == len(other) > 0
    assert all(torch.equal(a, b) for a, b in zip(usual, other, strict=True))


@needs_kernels
def test_outputs_can_be_changed_in_place() -> None:
    x = numbers(2, 8, 64).requires_grad_()
    y = kernels.affine(x, numbers(64, 64), numbers(64))
    y += 1
    y.sum().backward()
    assert x.grad is not None


def test_a_library_that_cannot_be_loaded_is_left_aside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "_kernels.so"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(compiled, "find_spec", lambda _: SimpleNamespace(origin=str(broken)))
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    with pytest.warns(UserWarning, match="kernels in C cannot be loaded"):
        assert compiled.loaded.__wrapped__() is None


@pytest.mark.skipif(
    shutil.which("cc") is None or not torch.cpu._is_avx512_bf16_supported(),
    reason="no C compiler, or a processor without AVX-512 BF16",
)
def test_an_installation_has_them() -> None:
    assert compiled.loaded() is not None
