"""Kernels and threads: any number of them, from any of them, beside others."""

from collections.abc import Callable
from threading import Thread

import pytest
import torch
from kernel_paths import model_and_batch, numbers, on_every_path
from torch import Tensor

from hopscope.models import compiled, kernels


def gradients_of_a_transformer() -> list[Tensor]:
    model, batch = model_and_batch()
    model(batch.inputs).square().sum().backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def gradients_of_maps() -> list[Tensor]:
    """Of shapes whose gradients of weights are shared out in different ways."""
    torch.manual_seed(0)
    inputs = []
    for outs, ins in ((512, 128), (384, 128), (128, 128), (64, 576)):
        some = numbers(10, 31, ins), numbers(outs, ins), numbers(outs)
        inputs += [x.requires_grad_() for x in some]
        kernels.affine(*some).square().sum().backward()
    return [x.grad for x in inputs if x.grad is not None]


@on_every_path
@pytest.mark.parametrize("gradients", [gradients_of_a_transformer, gradients_of_maps])
def test_the_result_does_not_depend_on_threads(
    path: str, gradients: Callable[[], list[Tensor]]
) -> None:
    before, all_gradients = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            with compiled.using(path):
                all_gradients.append(gradients())
    finally:
        torch.set_num_threads(before)
    first, *others = all_gradients
    assert len(first) > 0
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@on_every_path
def test_any_thread_can_call_them_and_others_may_use_the_tiles_in_between(path: str) -> None:
    """torch's products in bf16 take tiles of other sizes on a processor with AMX."""
    left, right = numbers(40, 72), numbers(72, 24)

    def call() -> None:
        with compiled.using(path):
            gradients.append(gradients_of_maps())

    gradients: list[list[Tensor]] = []
    call()
    product = left @ right
    call()
    assert torch.equal(product, left @ right)
    thread = Thread(target=call)
    thread.start()
    thread.join()
    here, again, elsewhere = gradients
    assert len(here) > 0
    for a, b, c in zip(here, again, elsewhere, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)
