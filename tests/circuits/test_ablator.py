"""Many ablations in one walk against one edited forward pass each."""

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
from hopscope.errors import CircuitError
from hopscope.models import Transformer


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
