"""The halves of a block, each as one operation, held to float64 written out."""

import pytest
import torch
from kernel_paths import PATHS, off
from torch import Tensor, nn

from hopscope.configs import Interface, Model
from hopscope.models import compiled, halves
from hopscope.models.layers import Attention, Mlp, Norm
from hopscope.models.transformer import Transformer

CONFIG = Model(layers=2, heads=2, d_model=128, init="fan-in")


def filled(layer: nn.Module, seed: int) -> nn.Module:
    """The layer with numbers that bf16 can hold."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in layer.parameters():
        scale = parameter.shape[-1] ** -0.5
        numbers = torch.empty(parameter.shape).normal_(0, scale, generator=generator)
        parameter.data = numbers.bfloat16().to(parameter.dtype)
    return layer


def half(kind: str, fleet: tuple[int, ...]) -> nn.ModuleList:
    layer = Attention(fleet, CONFIG) if kind == "attention" else Mlp(fleet, CONFIG)
    return nn.ModuleList([filled(layer, 0), filled(Norm(fleet, CONFIG.d_model), 1)])


def added(both: nn.ModuleList, x: Tensor, read: int) -> Tensor:
    layer, norm = both
    out: Tensor = (
        layer.added(x, norm, read) if isinstance(layer, Attention) else layer.added(x, norm)
    )  # type: ignore[operator]
    return out


def results(
    kind: str, fleet: tuple[int, ...], batch: int, read: int, dtype: torch.dtype
) -> list[Tensor | None]:
    """Value, gradient of the input, gradients of all parameters."""
    torch.manual_seed(2)
    both = half(kind, fleet).to(dtype)
    x = torch.randn(*fleet, batch, 30, 128).bfloat16().to(dtype).requires_grad_()
    value = added(both, x, read)
    slope = torch.randn(value.shape).bfloat16().to(dtype)
    value.backward(slope)
    return [value, x.grad, *(parameter.grad for parameter in both.parameters())]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("fleet", [(), (2,)])
@pytest.mark.parametrize(("kind", "read"), [("attention", 30), ("attention", 4), ("mlp", 30)])
def test_a_half(path: str, fleet: tuple[int, ...], kind: str, read: int) -> None:
    """Of more rows than are taken through the backward pass at a time, and of few."""
    for batch in (1, 37):
        with compiled.using(path):
            ours = results(kind, fleet, batch, read, torch.bfloat16)
        exact = results(kind, fleet, batch, read, torch.float64)
        for near, true in zip(ours, exact, strict=True):
            assert off(near, true) < 4


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("kind", "read"), [("attention", 30), ("attention", 4), ("mlp", 30)])
def test_the_result_does_not_depend_on_threads(path: str, kind: str, read: int) -> None:
    before, every = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            with compiled.using(path):
                every.append(results(kind, (), 61, read, torch.bfloat16))
    finally:
        torch.set_num_threads(before)
    for other in every[1:]:
        for a, b in zip(every[0], other, strict=True):
            assert a is not None
            assert b is not None
            assert torch.equal(a, b)


@pytest.mark.parametrize("path", compiled.possible())
def test_what_they_are_not_made_for_is_left_to_the_layers(path: str) -> None:
    x, vector = torch.zeros(1, 8, 64).bfloat16(), torch.zeros(64).bfloat16()
    square, norm, heads = torch.zeros(64, 64).bfloat16(), (vector, vector), (2, True, 8, 1e-5)
    pair, fits = (square, vector), halves.Heads(*heads)
    maps, nine = (pair, square, pair, pair), fits._replace(read=9)  # of eight positions
    wide, half = (square, vector.float()), square[:32]
    with compiled.using(path):
        assert halves.suit_mlp(x, norm, pair, pair) == (path != "torch")
        assert halves.suit_attention(x, norm, maps, fits) == (path != "torch")
        assert not halves.suit_mlp(x.float(), norm, pair, pair)
        assert not halves.suit_mlp(x, (vector, vector.float()), pair, pair)
        assert not halves.suit_attention(x.float(), norm, maps, fits)
        assert not halves.suit_attention(x, norm, maps, nine)
        for other in (
            (pair, square.float(), pair, pair), (pair, half, pair, pair), (pair, square, wide, pair)
        ):  # fmt: skip
            assert not halves.suit_attention(x, norm, other, fits)


@pytest.mark.parametrize("path", compiled.possible())
def test_a_sequence_shorter_than_what_is_read_is_read_as_a_whole(path: str) -> None:
    shape = Interface(tokens=True, inputs=8, length=32, read=32, outputs=9)
    model = Transformer.seeded(CONFIG, shape, 0).bfloat16()
    tokens = torch.randint(0, 8, (64, 5), generator=torch.Generator().manual_seed(3))
    with compiled.using(path):
        found = model(tokens)
        assert torch.equal(found, model(tokens, read=5))
        found.sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
    with compiled.using("torch"):
        assert off(found, model(tokens).double()) < 8
