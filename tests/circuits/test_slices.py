"""Outputs of a large vocabulary are computed for a few examples at a time."""

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest
import torch
from torch import Tensor

from hopscope.circuits import (
    Ablation,
    Ablator,
    CallbackModel,
    Drawn,
    OwnTask,
    Pattern,
    Site,
    adapter_of,
    budget,
    examples_of,
)
from hopscope.circuits.adapters import TransformerAdapter
from hopscope.circuits.circuit_patching import mean_ablate
from hopscope.circuits.engine import Adapter
from hopscope.circuits.own_task import plain_losses
from hopscope.circuits.patching import pairs_of, patched
from hopscope.circuits.pattern import AS_IN_MODEL, MEAN, RESAMPLE
from hopscope.circuits.scores import Runs
from hopscope.circuits.walk import Sliced
from hopscope.configs import MQAR, Model
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer

TASK = MQAR(pairs=2, alphabet=2048, length=12, queries=2)
ONE = 8 * TASK.alphabet * 4
"""The bytes of the outputs of one example: it is read at eight positions."""
COUNT = 7


SITES = [
    Site(layer=layer, heads=(head,), destinations=(Role("query"),))
    for layer in range(2)
    for head in range(2)
]


class Counting(TransformerAdapter):
    """A model that counts the examples of each call of `unembed`."""

    most = 0

    def unembed(self, x: Tensor) -> Tensor:
        self.most = max(self.most, len(x))
        return super().unembed(x)


def ablated(model: Adapter | CallbackModel) -> Tensor:
    changes = [Ablation(), Ablation.of({(1, 0): Pattern()})]
    return Ablator(model, examples_of(TASK, COUNT)).losses(changes)


@torch.no_grad()
def scored(model: Adapter) -> Tensor:
    changed = Ablation.of({(1, 0): Pattern()})
    found = Runs(model, examples_of(TASK, COUNT)).measured([(changed, "mean")])
    agreed = [each for its in found for each in (its.agreement, its.same_answer) if each]
    return torch.tensor([*found[1].losses, *(n for each in agreed for n in (each.mean, each.high))])


def averaged(model: Adapter) -> Tensor:
    found = mean_ablate(model, examples_of(TASK, COUNT), SITES, 1.0)
    return torch.tensor([[its.by_place.mean, its.by_role.high] for its in found])


def exchanged(model: Adapter) -> Tensor:
    variants = [(number, "x1") for number in range(len(SITES))]
    return patched(model, pairs_of(TASK, COUNT), SITES, variants)[1]


@pytest.mark.parametrize(
    ("measure", "examples"), [(ablated, 2), (scored, 2), (averaged, 2), (exchanged, COUNT)]
)  # fmt: skip
def test_outputs_of_a_few_examples_at_a_time_give_the_same(
    measure: Callable[[Adapter], Tensor], examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patch is measured on the outputs of one variant at a time, as its losses know all pairs."""
    model = Transformer.seeded(
        Model(layers=2, heads=2, d_model=16, init="fan-in"), TASK.interface(), 0
    )
    usual, few = Counting(model), Counting(model)
    expected = measure(usual)
    monkeypatch.setattr(budget, "CALL_BYTES", 2 * ONE)
    assert torch.allclose(measure(few), expected, atol=1e-5)
    assert few.most <= examples < usual.most


def test_a_whole_model_is_run_on_a_few_examples_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Transformer.seeded(Model(layers=2, heads=2, d_model=16), TASK.interface(), 0)
    ran: list[int] = []

    def forward(inputs: Tensor, attention: Any) -> Tensor:
        ran.append(len(inputs))
        outputs: Tensor = model(inputs, attention=attention, read=inputs.shape[1])
        return outputs[:, -TASK.interface().read :]

    whole = CallbackModel(forward, model, (2, 2))
    expected = ablated(whole)
    assert max(ran) == COUNT
    ran.clear()
    monkeypatch.setattr(budget, "CALL_BYTES", 2 * ONE)
    assert torch.allclose(ablated(whole), expected, atol=1e-5)
    assert max(ran) == 2


class Attending(TransformerAdapter):
    """A model that counts the examples whose attention in a layer is held at once."""

    most = 0

    def embed(self, inputs: Tensor) -> Tensor:
        self.most = max(self.most, len(inputs))
        return super().embed(inputs)


@pytest.mark.parametrize("count", [7, 8])
def test_large_ablations_run_on_slices_of_the_examples(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Transformer.seeded(
        Model(layers=3, heads=2, d_model=16, init="fan-in"), TASK.interface(), 0
    )
    whole, sliced = Attending(model), Attending(model)
    changes = [Pattern(), Pattern(rest=MEAN), Pattern(rest=RESAMPLE)]
    ablations = [
        Ablation(),
        *(Ablation.of({(layer, 1): its}) for layer in range(3) for its in changes),
        Ablation.of(
            {(0, 0): changes[2], (1, 1): Pattern().with_target(Role("query"), AS_IN_MODEL)}
        ),
    ]
    expected = Ablator(whole, examples_of(TASK, count)).losses(ablations)
    monkeypatch.setattr(budget, "CALL_BYTES", 1)
    monkeypatch.setattr(budget, "ABLATION_BYTES", 2 * budget.layer_bytes(2, TASK.length, 16))
    ablator = Ablator(sliced, examples_of(TASK, count))
    assert torch.allclose(ablator.losses(ablations), expected, rtol=1e-6, atol=1e-6)
    again = ablator.losses(ablations[::-1]).flip(0)  # from cached streams
    assert torch.allclose(again, expected, rtol=1e-6, atol=1e-6)
    assert (sliced.most, whole.most) == (2, count)


def test_a_stream_alone_is_cached_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Transformer.seeded(Model(layers=2, d_model=16), TASK.interface(), 0)
    monkeypatch.setattr(Tensor, "clone", None)
    Ablator(model, examples_of(TASK, COUNT)).losses([Ablation()])


def test_outputs_of_heads_are_freed_with_their_ablator() -> None:
    """Not when the garbage collector runs next: they are large."""
    model = Transformer.seeded(Model(layers=2, d_model=16), TASK.interface(), 0)
    gc.collect()
    gc.disable()
    try:
        sliced = Sliced(adapter_of(model), examples_of(TASK, COUNT), TASK.length)
        kept = ref(sliced.before(sliced.slices[0])[0])
        assert kept() is sliced.before(sliced.slices[0])[0]
        del sliced
        assert kept() is None
    finally:
        gc.enable()


def test_an_ablation_that_the_machine_cannot_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Transformer.seeded(Model(layers=2, d_model=16), TASK.interface(), 0)
    examples = examples_of(TASK, COUNT)
    plain = replace(examples, losses=examples.losses_of)
    monkeypatch.setattr(budget, "memory_bytes", lambda: COUNT * ONE)
    with pytest.raises(CircuitError, match="an ablation on 7 examples of 12 .* take fewer"):
        Ablator(model, plain)
    Ablator(model, examples)


def test_a_loss_of_ones_own_that_takes_all_outputs_is_given_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Counting(Transformer.seeded(Model(layers=2, d_model=16), TASK.interface(), 0))
    examples = examples_of(TASK, COUNT)
    plain = replace(examples, losses=lambda outputs: 2 * examples.losses(outputs))
    expected = Ablator(model, examples).losses([Ablation()])
    monkeypatch.setattr(budget, "CALL_BYTES", 2 * ONE)
    assert torch.equal(Ablator(model, plain).losses([Ablation()]), 2 * expected)
    assert model.most == COUNT


def test_a_part_of_the_examples_has_no_losses() -> None:
    model = Counting(Transformer.seeded(Model(layers=2, d_model=16), TASK.interface(), 0))
    with pytest.raises(CircuitError, match="losses need all examples"):
        Ablator(model, examples_of(TASK, COUNT).part(slice(2, 4))).losses([Ablation()])


def test_a_loss_that_needs_other_examples_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, full = torch.rand(COUNT, 1), False

    def weighted(outputs: Tensor, targets: Tensor) -> Tensor:
        if full:
            torch.empty(2**60)  # more memory than there is
        return weights * plain_losses(outputs, targets)

    def draw(count: int, seed: int) -> Drawn:
        inputs = examples_of(TASK, count, seed).inputs
        return Drawn(inputs, torch.zeros(count, 1).long(), roles=torch.zeros_like(inputs))

    model = Transformer.seeded(Model(layers=2, heads=2, d_model=16), TASK.interface(), 0)
    task = OwnTask(draw, roles=["token"], chance=1.0, loss=weighted)
    monkeypatch.setattr(budget, "CALL_BYTES", ONE // 4)  # two examples
    ablator = Ablator(model, examples_of(task, COUNT))
    with pytest.raises(CircuitError, match="of 7 examples failed .*depend on other examples"):
        ablator.losses([Ablation()])
    full = True
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        ablator.losses([Ablation()])
