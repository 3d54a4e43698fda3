"""Kernels and threads: any number of them, from any of them, beside others."""

from collections.abc import Callable
from threading import Thread

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


def gradients_of_a_transformer() -> list[Tensor]:
    model, batch = model_and_batch(())
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
def test_others_may_use_the_tiles_in_between(path: str) -> None:
    """torch's products in bf16 take tiles of other sizes on a processor with AMX."""
    with compiled.using(path):
        before = gradients_of_maps()
        left, right = numbers(40, 72), numbers(72, 24)
        product = left @ right
        between = gradients_of_maps()
        assert torch.equal(product, left @ right)
    assert all(torch.equal(a, b) for a, b in zip(before, between, strict=True))


@on_every_path
def test_any_thread_can_call_them(path: str) -> None:
    def elsewhere() -> None:
        with compiled.using(path):
            there.extend(gradients_of_maps())

    there: list[Tensor] = []
    thread = Thread(target=elsewhere)
    thread.start()
    thread.join()
    with compiled.using(path):
        here = gradients_of_maps()
    assert len(there) > 0
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))
