"""The kernels in C, on every path that this processor can take, held to float64 written out."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_paths import model_and_batch, numbers, off, on_every_path
from torch import Tensor
from torch.nn import functional

from hopscope.models import Transformer, compiled, kernels

WIDTHS = st.sampled_from([16, 32, 48, 128])


def hold(
    path: str, fast: Callable[..., Tensor], slow: Callable[..., Tensor], *inputs: Tensor
) -> None:
    """Value and gradients of `fast` in bf16, on this path, are those of `slow` in float64."""
    near = [x.clone().requires_grad_() for x in inputs]
    exact = [x.double().requires_grad_() for x in inputs]
    truth = slow(*exact)
    slope = numbers(*truth.shape)
    with compiled.using(path):
        value = fast(*near)
        value.backward(slope)
    assert off(value, truth) < 3
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


@on_every_path
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 128), st.integers(1, 3), WIDTHS, st.booleans(), st.data())
def test_attention(
    path: str, seq: int, heads: int, width: int, causal: bool, data: st.DataObject
) -> None:
    """From all positions, of a fleet too, or from the last ones."""
    torch.manual_seed(seq)
    if data.draw(st.booleans()):
        fleet, batch = data.draw(st.sampled_from([(), (2,)])), data.draw(st.integers(1, 3))
        hold(
            path,
            lambda x: kernels.attend(x, None, heads, causal),
            lambda x: looked_up(*x.chunk(3, -1), heads, causal),
            numbers(*fleet, batch, seq, 3 * heads * width),
        )
    else:
        read = data.draw(st.integers(1, seq))
        hold(
            path,
            lambda x, query: kernels.attend(x, query, heads, causal),
            lambda x, query: looked_up(query, *x.chunk(2, -1), heads, causal),
            numbers(2, seq, 2 * heads * width),
            numbers(2, read, heads * width),
        )


@on_every_path
def test_attention_bears_large_scores(path: str) -> None:
    torch.manual_seed(0)
    joined = numbers(2, 20, 48, scale=60)
    with compiled.using(path):
        out = kernels.attend(joined, None, 1, causal=True)
    assert off(out, looked_up(*joined.double().chunk(3, -1), 1, causal=True)) < 3


@on_every_path
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 90), st.integers(1, 6), st.integers(1, 6), st.data())
def test_an_affine_map(path: str, seq: int, ins: int, outs: int, data: st.DataObject) -> None:
    torch.manual_seed(seq)
    fleet, batch = data.draw(st.sampled_from([(), (3,)])), data.draw(st.integers(1, 6))
    ins, outs = 64 * ins, 64 * outs
    hold(
        path,
        kernels.affine,
        lambda x, weight, bias: x @ weight.mT.unsqueeze(-3) + bias[..., None, None, :],
        numbers(*fleet, batch, seq, ins),
        numbers(*fleet, outs, ins, scale=ins**-0.5),
        numbers(*fleet, outs),
    )


@on_every_path
def test_views_are_as_good_as_copies(path: str) -> None:
    torch.manual_seed(0)
    x, weight, bias = numbers(5, 27, 128)[..., 64:], numbers(64, 128).mT, numbers(256)[::2]
    copies = (each.contiguous() for each in (x, weight, bias))
    up, down, shift = numbers(64, 128).mT, numbers(128, 64).mT, numbers(64)
    with compiled.using(path):
        assert torch.equal(kernels.affine(x, weight, bias), kernels.affine(*copies))
        mlp = kernels.mlp(x, (up, bias), (down, shift))
        copied = kernels.mlp(
            x.contiguous(), (up.contiguous(), bias.contiguous()), (down.contiguous(), shift)
        )
    assert torch.equal(mlp, copied)


@on_every_path
@pytest.mark.parametrize("fleet", [(), (3,)])
def test_a_norm(path: str, fleet: tuple[int, ...]) -> None:
    torch.manual_seed(0)

    def slow(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
        unit = functional.layer_norm(x, (48,), eps=1e-5)
        return unit * gain[..., None, None, :] + shift[..., None, None, :]

    inputs = numbers(*fleet, 40, 7, 48, scale=3), numbers(*fleet, 48), numbers(*fleet, 48)
    hold(path, lambda *x: kernels.norm(*x, 1e-5), slow, *inputs)


@on_every_path
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 90), st.sampled_from([64, 128, 192]), st.sampled_from([64, 256]), st.data())
def test_an_mlp(path: str, seq: int, width: int, hidden: int, data: st.DataObject) -> None:
    torch.manual_seed(seq)
    fleet, batch = data.draw(st.sampled_from([(), (2,)])), data.draw(st.integers(1, 4))

    def slow(x: Tensor, up: Tensor, a: Tensor, down: Tensor, b: Tensor) -> Tensor:
        active = functional.gelu(x @ up.mT.unsqueeze(-3) + a[..., None, None, :])
        return active @ down.mT.unsqueeze(-3) + b[..., None, None, :]

    hold(
        path,
        lambda x, up, a, down, b: kernels.mlp(x, (up, a), (down, b)),
        slow,
        numbers(*fleet, batch, seq, width),
        numbers(*fleet, hidden, width, scale=width**-0.5),
        numbers(*fleet, hidden),
        numbers(*fleet, width, hidden, scale=hidden**-0.5),
        numbers(*fleet, width),
    )


@on_every_path
@pytest.mark.parametrize("models", [(), (0, 1)])
def test_a_transformer_is_the_same_with_and_without(path: str, models: tuple[int, ...]) -> None:
    def outputs_of(path: str) -> tuple[Transformer, Tensor]:
        model, batch = model_and_batch(models)
        with compiled.using(path):
            outputs = model(batch.inputs)
            outputs.square().sum().backward()
        return model, outputs

    exact, batch = model_and_batch(models)
    truth = exact.double()(batch.inputs.double())
    truth.square().sum().backward()
    (ours, outputs), (plain, without) = outputs_of(path), outputs_of("torch")
    assert not torch.equal(outputs, without)  # else both took the same way
    assert off(outputs, truth) < max(4, 1.5 * off(without, truth))
    for near, torchs, true in zip(
        ours.parameters(), plain.parameters(), exact.parameters(), strict=True
    ):
        assert off(near.grad, true.grad) < max(4, 1.5 * off(torchs.grad, true.grad))
