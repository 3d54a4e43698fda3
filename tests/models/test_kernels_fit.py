"""What the kernels are not made for is left to torch, and what they are made for is anybody's."""

import pytest
import torch
from kernel_paths import model_and_batch, numbers, on_every_path
from torch import Tensor

from hopscope.models import compiled, kernels


@pytest.mark.parametrize("path", compiled.possible())
def test_what_they_are_not_made_for_is_left_to_torch(path: str) -> None:
    long, x, vector, bias = numbers(1, 128, 64), numbers(2, 8, 64), numbers(64), numbers(128)
    weight = numbers(128, 64)
    up, down = (weight, bias), (numbers(64, 128), vector)
    suit, affine, attention = kernels.suit, kernels.suit_affine, kernels.suit_attention
    mlp, norm = kernels.suit_mlp, kernels.suit_norm
    taken = [
        (suit, (long,)), (attention, (long, 16)), (affine, (long, weight, bias)),
        (affine, (x, weight, bias)), (mlp, (x, up, down)), (norm, (x, vector, vector)),
    ]  # fmt: skip
    left = [
        (suit, (long.float(),)), (suit, (long, torch.ones(64))), (suit, (numbers(1, 4, 40),)),
        (attention, (numbers(1, 129, 64), 16)), (attention, (long, 8)), (attention, (long, 144)),
        (affine, (long, numbers(8, 64), numbers(8))), (affine, (x[..., :48], weight, bias)),
        (affine, (x, weight, bias.float())), (affine, (x, weight, bias[:64])),
        (affine, (x[None], weight, bias)), (affine, (x[0], weight, bias)),
        (affine, (x[None], weight.expand(3, -1, -1), bias.expand(3, -1))),
        (mlp, (x, up, up)), (mlp, (x, up, (down[0], vector.float()))),
        (norm, (x, bias, bias)), (norm, (x, vector, torch.ones(64))),
        (norm, (x[None], numbers(3, 64), numbers(3, 64))),
    ]  # fmt: skip
    with compiled.using(path):
        for number, (fits, given) in enumerate(taken):
            assert fits(*given) == (path != "torch"), number
        for number, (fits, given) in enumerate(left):
            assert not fits(*given), number


@on_every_path
@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64])
def test_the_default_dtype_does_not_matter(path: str, default: torch.dtype) -> None:
    def gradients() -> list[Tensor]:
        for parameter in model.parameters():
            parameter.grad = None
        with compiled.using(path):
            model(batch.inputs).square().sum().backward()
        return [p.grad for p in model.parameters() if p.grad is not None]

    model, batch = model_and_batch()
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
def test_outputs_can_be_changed_in_place_and_no_examples_are_no_error(path: str) -> None:
    for batch in (2, 0):
        x, weight, bias = (each.requires_grad_() for each in (
            numbers(batch, 8, 64), numbers(128, 64), numbers(128),
        ))  # fmt: skip
        with compiled.using(path):
            y = kernels.affine(x, weight, bias)
        y += 1
        y.sum().backward()
        assert x.grad is not None
        assert weight.grad is not None
        assert weight.grad.any() == (batch > 0)
