"""Models under the microscope: whole or walked, and how one is told from another."""

from collections.abc import Callable, Sequence
from inspect import unwrap

import pytest
import torch
from changes import CHANGES
from torch import Tensor, nn

from hopscope import load
from hopscope.circuits import (
    Ablation,
    Ablator,
    Carried,
    Exam,
    Whole,
    attention_maps,
    subject_of,
)
from hopscope.circuits.layer_steps import prove
from hopscope.circuits.subject import TransformerSubject, check_finite, weights_digest
from hopscope.configs import KHop, Retrieval
from hopscope.errors import CircuitError
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.tracing.accounting import accounted
from hopscope.tracing.baselines import baselines


def test_a_whole_model_gives_what_a_walk_gives(random_model: Transformer, exam: Exam) -> None:
    def forward(inputs: Tensor, attention: object) -> Tensor:
        every = random_model(inputs, attention=attention, read=inputs.shape[1])
        return every[:, -random_model.interface.read :]

    whole = Ablator(Whole(forward, random_model, (3, 2)), exam)
    walked = Ablator(subject_of(random_model), exam)
    several = [Ablation.of({(1, 0): change, (2, 1): change}) for change in CHANGES[:5]]
    assert torch.allclose(whole.losses(several), walked.losses(several), atol=1e-5)
    with pytest.raises(CircuitError, match="what heads carry cannot be replaced through"):
        whole.losses([Ablation.of({(0, 0): Carried("mean")})])


def test_a_fleet_is_refused(random_model: Transformer) -> None:
    fleet = Transformer(random_model.config, random_model.interface, models=(0, 1))
    with pytest.raises(CircuitError, match=r"a fleet of 2; examine one member: model.member\(i\)"):
        subject_of(fleet)


def test_a_subject_in_steps_is_the_model(random_model: Transformer, exam: Exam) -> None:
    subject = subject_of(random_model)
    x = subject.enter(exam.inputs)
    with torch.no_grad():
        for layer in range(subject.layers):
            pattern = subject.look(layer, x, x.shape[1], range(subject.heads))
            x = subject.write(layer, x, pattern @ subject.values(layer, x))
        assert torch.allclose(
            subject.leave(x[:, -subject.answers_at() :]), random_model(exam.inputs), atol=1e-5
        )
    assert subject.answers_at() == random_model.interface.read


def test_a_digest_is_of_names_and_weights() -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    second.load_state_dict(first.state_dict())
    assert weights_digest(first) == weights_digest(second)
    with torch.no_grad():
        second.bias[1] += 1e-7
    assert weights_digest(first) != weights_digest(second)
    assert weights_digest(nn.Sequential(first)) != weights_digest(first)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(torch.float32, "d9be5d52fec5445d4a13"), (torch.bfloat16, "060dceade7b7afb235df")],
)
def test_digests_are_those_that_circuits_were_kept_with(dtype: torch.dtype, expected: str) -> None:
    module = nn.Linear(3, 2)
    with torch.no_grad():
        module.weight.copy_(torch.arange(6.0).view(2, 3) / 8)
        module.bias.copy_(torch.tensor([-1.0, 0.5]))
    assert weights_digest(module.to(dtype)).startswith(expected)


def test_single_numbers_count_in_a_digest() -> None:
    first, second = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    assert first.num_batches_tracked is not None
    assert weights_digest(first) == weights_digest(second)
    first.num_batches_tracked += 1
    assert weights_digest(first) != weights_digest(second)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused_with_what_they_are(bad: float) -> None:
    check_finite(torch.ones(3), "the loss")
    with pytest.raises(CircuitError, match="the loss is not a finite number everywhere: the wei"):
        check_finite(torch.tensor([1.0, bad]), "the loss")


@pytest.mark.parametrize("task", [Retrieval(hops=3), KHop(), Retrieval(hops=2, dim=4)])
def test_a_model_is_not_examined_on_examples_that_it_was_not_made_for(
    two_hops: Planted, task: Retrieval | KHop
) -> None:
    with pytest.raises(CircuitError, match="was made for examples of vectors .* on its own task"):
        attention_maps(two_hops.model, task, 4)


def test_what_a_function_of_ones_own_returns_is_one_tensor(
    random_model: Transformer, exam: Exam
) -> None:
    whole = Whole(lambda inputs, attention: (inputs,), random_model, shape=(3, 1))
    with pytest.raises(CircuitError, match="returned tuple; expected the outputs as one tensor"):
        whole.outputs(exam.inputs, lambda layer, pattern: pattern)


def test_what_has_a_model_is_told_to_give_it() -> None:
    with pytest.raises(CircuitError, match=r"a Study is no model, but has one: give its `.model`"):
        unwrap(subject_of)(load("gallery/demo"))


class Odd(TransformerSubject):
    """A subject of one's own, whose attention is made into something else."""

    def __init__(self, model: Transformer, made: Callable[[Tensor], Tensor]) -> None:
        super().__init__(model)
        self.made = made

    def look(self, number: int, x: Tensor, read: int, heads: Sequence[int]) -> Tensor:
        return self.made(super().look(number, x, read, heads))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda p: 1.15 * p, "layer 0 handed out rows with 0 in them, and sums up to 1.15;"),
        (lambda p: 0.95 * p + 0.05, r"layer 0 (handed out rows|attends to later positions)"),
        (lambda p: p.flip(-1), "layer 0 attends to later positions .*say causal=False"),
    ],
)
def test_a_walk_of_ones_own_is_looked_through(
    random_model: Transformer, exam: Exam, made: Callable[[Tensor], Tensor], told: str
) -> None:
    ablator = Ablator(Odd(random_model, made), exam)
    with pytest.raises(CircuitError, match=told):
        ablator.losses([Ablation()])
    with torch.no_grad(), pytest.raises(CircuitError, match=told):
        prove(ablator.subject, random_model.enter(exam.inputs), random_model(exam.inputs), "mine")


def test_a_walk_of_ones_own_is_proved(random_model: Transformer, exam: Exam) -> None:
    subject, x = TransformerSubject(random_model), random_model.enter(exam.inputs)
    expected = random_model(exam.inputs)
    with torch.no_grad():
        prove(subject, x, expected, "mine")
        with pytest.raises(CircuitError, match="the adapter for mine is off by"):
            prove(subject, x, expected + 0.1 * expected.abs().max(), "mine")


def test_a_circuit_and_a_task_that_changed_places_are_told(random_model: Transformer) -> None:
    task = KHop()
    for misled in (baselines, accounted):
        with pytest.raises(CircuitError, match="expected the model's circuit behind .* got KHop"):
            unwrap(misled)(random_model, task, task)
