"""Many ablations in one walk against one edited forward pass each."""

from dataclasses import replace
from inspect import unwrap

import pytest
import torch

from hopscope.circuits import (
    Ablation,
    Ablator,
    Exam,
    Mechanism,
    subject_of,
)
from hopscope.circuits.ablation import Head
from hopscope.circuits.exam import exam_of
from hopscope.errors import CircuitError
from hopscope.models import Transformer
from hopscope.models.planted import Planted


@pytest.mark.parametrize("head", [(3, 0), (0, 2), (-1, 0)])
def test_a_head_out_of_range_is_named(ablator: Ablator, head: Head) -> None:
    expected = (
        rf"there is no head {head[0]}\.{head[1]}; this model has layers 0 … 2 with heads 0 … 1"
    )
    with pytest.raises(CircuitError, match=expected):
        ablator.losses([Ablation.of({head: Mechanism()})])


def test_a_loss_that_is_no_number_is_refused(random_model: Transformer, exam: Exam) -> None:
    damaged = Transformer(random_model.config, random_model.interface)
    damaged.load_state_dict(random_model.state_dict())
    with torch.no_grad():
        damaged.head.bias[0] = torch.nan
    with pytest.raises(CircuitError, match="the model's loss is not a finite number everywhere"):
        Ablator(subject_of(damaged), exam).losses([Ablation()])


def test_a_loss_that_an_ablation_makes_no_number_is_not_blamed_on_the_weights(
    two_hops: Planted, exam: Exam
) -> None:
    far = replace(exam, losses=lambda outputs: exam.losses(outputs) * 3e38 * 10)
    ablator = Ablator(two_hops.model, far)
    assert float(ablator.losses([Ablation()]).max()) < 1
    even = Ablation.of({(2, 0): Mechanism(), (1, 0): Mechanism()})
    with pytest.raises(
        CircuitError, match=r"with 1.0 uniform \(and 1 more\) the loss is not a fin"
    ):
        ablator.losses([even])


def test_an_ablator_takes_a_model_and_asks_for_ablations_and_an_exam(two_hops: Planted) -> None:
    exam = exam_of(two_hops.task, 8)
    losses = Ablator(two_hops.model, exam).losses([Ablation()])
    assert torch.equal(losses, Ablator(subject_of(two_hops.model), exam).losses([Ablation()]))
    for wrong in ([], Ablation()):
        with pytest.raises(CircuitError, match="a list of ablations, of at least one"):
            unwrap(Ablator.losses)(Ablator(two_hops.model, exam), wrong)
    with pytest.raises(CircuitError, match="takes an Exam, as .* makes; got Retrieval"):
        unwrap(Ablator.__init__)(object.__new__(Ablator), two_hops.model, two_hops.task)
