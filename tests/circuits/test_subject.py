"""Models under the microscope: hopscope's own, subjects of one's own, told apart."""

from collections.abc import Callable, Sequence
from inspect import unwrap

import pytest
import torch
from torch import Tensor, nn

from hopscope import load
from hopscope.circuits import Ablation, Ablator, Exam, subject_of
from hopscope.circuits.layer_steps import prove
from hopscope.circuits.subject import TransformerSubject, weights_digest
from hopscope.configs import KHop
from hopscope.errors import CircuitError
from hopscope.models import Transformer
from hopscope.tracing.accounting import accounted
from hopscope.tracing.baselines import baselines


def test_what_is_no_single_model_is_refused(random_model: Transformer) -> None:
    fleet = Transformer(random_model.config, random_model.interface, models=(0, 1))
    with pytest.raises(CircuitError, match=r"a fleet of 2; examine one member: model.member\(i\)"):
        subject_of(fleet)
    with pytest.raises(CircuitError, match=r"a Study is no model, but has one: give its `.model`"):
        unwrap(subject_of)(load("gallery/demo"))
    for misled in (baselines, accounted):
        with pytest.raises(CircuitError, match="expected the model's circuit behind .* got KHop"):
            unwrap(misled)(random_model, KHop(), KHop())


def test_a_digest_is_of_names_and_weights() -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    second.load_state_dict(first.state_dict())
    assert weights_digest(first) == weights_digest(second)
    with torch.no_grad():
        second.bias[1] += 1e-7
    assert weights_digest(first) != weights_digest(second)
    assert weights_digest(nn.Sequential(first)) != weights_digest(first)
    counts, more = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    assert weights_digest(counts) == weights_digest(more)
    more.num_batches_tracked += 1  # type: ignore[operator]
    assert weights_digest(counts) != weights_digest(more)  # single numbers count, too


def test_digests_are_those_that_circuits_were_kept_with() -> None:
    module = nn.Linear(3, 2)
    with torch.no_grad():
        module.weight.copy_(torch.arange(6.0).view(2, 3) / 8)
        module.bias.copy_(torch.tensor([-1.0, 0.5]))
    assert weights_digest(module).startswith("d9be5d52fec5445d4a13")
    assert weights_digest(module.to(torch.bfloat16)).startswith("060dceade7b7afb235df")


class Odd(TransformerSubject):
    """A subject of one's own, whose attention is made into something else."""

    def __init__(self, model: Transformer, made: Callable[[Tensor], Tensor]) -> None:
        super().__init__(model)
        self.made = made

    def look(self, number: int, x: Tensor, read: int, heads: Sequence[int]) -> Tensor:
        return self.made(super().look(number, x, read, heads))


@torch.no_grad()
def test_a_walk_of_ones_own_is_looked_through_and_proved(
    random_model: Transformer, exam: Exam
) -> None:
    subject, x = TransformerSubject(random_model), random_model.enter(exam.inputs)
    expected = random_model(exam.inputs)
    prove(subject, x, expected, "mine")
    with pytest.raises(CircuitError, match="the adapter for mine is off by"):
        prove(subject, x, expected + 0.1 * expected.abs().max(), "mine")
    for made, line in (
        (lambda p: 1.15 * p, "layer 0 handed out rows with 0 in them, and sums up to 1.15;"),
        (lambda p: 0.95 * p + 0.05, r"layer 0 (handed out rows|attends to later positions)"),
        (lambda p: p.flip(-1), "layer 0 attends to later positions .*say causal=False"),
    ):
        odd = Odd(random_model, made)
        with pytest.raises(CircuitError, match=line):
            Ablator(odd, exam).losses([Ablation()])
        with pytest.raises(CircuitError, match=line):
            prove(odd, x, expected, "mine")
