"""What the kernels are not made for is left to torch, and what they are made for is anybody's."""

import pytest
import torch
from kernel_paths import numbers, on_every_path
from torch import Tensor

from hopscope.configs import Model, Retrieval
from hopscope.models import Transformer, compiled, kernels
from hopscope.tasks import Batch, examples, sampler_of


def model_and_batch(models: tuple[int, ...]) -> tuple[Transformer, Batch]:
    task = Retrieval(hops=2, chains=2)
    sampler = sampler_of(task)
    config = Model(layers=2, heads=2, d_model=64, init="fan-in")
    model = Transformer(config, task.interface(), models=models)
    if not models:
        model = Transformer.seeded(config, task.interface(), 0)
    batch = examples(sampler, 0, torch.arange(8 * max(1, len(models))))
    return model.bfloat16(), batch.stacked(len(models)) if models else batch


@on_every_path
def test_what_they_are_not_made_for_is_left_to_torch(path: str) -> None:
    fits, weight, bias = numbers(1, 128, 64), numbers(128, 64), numbers(128)
    with compiled.using(path):
        assert kernels.suit(fits)
        assert kernels.suit_attention(fits, 16)
        assert kernels.suit_affine(fits, weight, bias)
        assert not kernels.suit(fits.float())
        assert not kernels.suit(fits, torch.ones(64))
        assert not kernels.suit(numbers(1, 4, 40))
        assert not kernels.suit_attention(numbers(1, 129, 64), 16)
        assert not kernels.suit_attention(fits, 8)
        assert not kernels.suit_attention(fits, 144)
        assert not kernels.suit_affine(fits, numbers(8, 64), numbers(8))


def test_without_them_all_is_left_to_torch() -> None:
    """As on a processor without AVX-512 BF16, and after an installation without a compiler."""
    x, weight, bias = numbers(1, 128, 64), numbers(64, 64), numbers(64)
    with compiled.using("torch"):
        assert not kernels.suit(x)
        assert not kernels.suit_attention(x, 16)
        assert not kernels.suit_affine(x, weight, bias)
        assert not kernels.suit_mlp(x, (weight, bias), (weight, bias))
        assert not kernels.suit_norm(x, numbers(64), numbers(64))


@on_every_path
def test_what_does_not_fit_together_is_left_to_torch(path: str) -> None:
    x, weight, bias = numbers(2, 8, 64), numbers(128, 64), numbers(128)
    up, down = (weight, bias), (numbers(64, 128), numbers(64))
    with compiled.using(path):
        assert kernels.suit_affine(x, weight, bias)
        assert not kernels.suit_affine(x[..., :48], weight, bias)
        assert not kernels.suit_affine(x, weight, bias.float())
        assert not kernels.suit_affine(x, weight, bias[:64])
        assert not kernels.suit_affine(x[None], weight, bias)
        assert not kernels.suit_affine(x[0], weight, bias)
        assert not kernels.suit_affine(x[None], weight.expand(3, -1, -1), bias.expand(3, -1))
        assert kernels.suit_mlp(x, up, down)
        assert not kernels.suit_mlp(x, up, up)
        assert not kernels.suit_mlp(x, up, (down[0], down[1].float()))
        assert kernels.suit_norm(x, numbers(64), numbers(64))
        assert not kernels.suit_norm(x, numbers(128), numbers(128))
        assert not kernels.suit_norm(x, numbers(64), torch.ones(64))
        assert not kernels.suit_norm(x[None], numbers(3, 64), numbers(3, 64))


@on_every_path
@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64])
def test_the_default_dtype_does_not_matter(path: str, default: torch.dtype) -> None:
    def gradients() -> list[Tensor]:
        for parameter in model.parameters():
            parameter.grad = None
        with compiled.using(path):
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


@on_every_path
def test_outputs_can_be_changed_in_place(path: str) -> None:
    x = numbers(2, 8, 64).requires_grad_()
    with compiled.using(path):
        y = kernels.affine(x, numbers(64, 64), numbers(64))
    y += 1
    y.sum().backward()
    assert x.grad is not None


@on_every_path
def test_no_examples_are_no_error(path: str) -> None:
    x, weight, bias = numbers(0, 8, 64), numbers(128, 64), numbers(128)
    weight.requires_grad_(), bias.requires_grad_()
    with compiled.using(path):
        kernels.affine(x, weight, bias).sum().backward()
    assert weight.grad is not None
    assert not weight.grad.any()
