import math

import pytest
import torch

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import Diverged
from hopscope.training.ledger import Ledger


@pytest.mark.parametrize(("value", "what"), [(math.nan, "is not a number"), (1e4, "is 1e\\+04")])
def test_the_first_bad_loss_is_named(value: float, what: str) -> None:
    ledger = Ledger(Experiment(task=Retrieval(hops=3, curriculum=False), seeds=(5, 6)), 0)
    ledger.note("train", 1, torch.tensor([[0.5], [0.5]]))
    ledger.note("train", 2, torch.tensor([[0.5], [value]]))
    with pytest.raises(Diverged, match=f"hop 3 {what} at step 2 .seed 6.; .* is step-7:"):
        ledger.settle("step-7")


def test_parts_are_named_for_the_steps_that_each_covers_alone() -> None:
    ledger = Ledger(Experiment(task=Retrieval(hops=2)), 3)
    for step in (4, 5):
        ledger.note("train", step, torch.tensor([[0.5, 0.7]]))
        ledger.settle("none")
        assert list(ledger.take(step)) == [f"metrics/part-{step - 1:08}-{step:08}.parquet"]
    assert ledger.take(6) == {}
