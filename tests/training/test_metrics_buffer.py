import math

import pytest
import torch

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import Diverged
from hopscope.training.stepper import MetricsBuffer


@pytest.mark.parametrize(("value", "what"), [(math.nan, "is not a number"), (1e4, "is 1e\\+04")])
def test_the_first_bad_loss_is_named(value: float, what: str) -> None:
    buffer = MetricsBuffer(Experiment(task=Retrieval(hops=3, curriculum=False), seeds=(5, 6)), 0)
    buffer.add("train", 1, torch.tensor([[0.5], [0.5]]))
    buffer.add("train", 2, torch.tensor([[0.5], [value]]))
    with pytest.raises(Diverged, match=f"hop 3 {what} at step 2 .seed 6.; .* is step-7:"):
        buffer.fetch("step-7")


def test_parts_are_named_for_the_steps_that_each_covers_alone() -> None:
    buffer = MetricsBuffer(Experiment(task=Retrieval(hops=2)), 3)
    for step in (4, 5):
        buffer.add("train", step, torch.tensor([[0.5, 0.7]]))
        buffer.fetch("none")
        assert list(buffer.take(step)) == [f"metrics/part-{step - 1:08}-{step:08}.parquet"]
    assert buffer.take(6) == {}
