"""Batches: examples stay with their roles and answers when they are dealt to models."""

import pytest
import torch

from hopscope.configs import MQAR, Retrieval, Task
from hopscope.errors import ConfigError
from hopscope.tasks import dataset


def test_a_stack_holds_the_same_examples_model_by_model() -> None:
    batch = dataset(Retrieval(hops=2, chains=2), 0, 6, "train")
    stacked = batch.stacked(3)
    assert len(batch) == 6
    assert stacked.inputs.shape == (3, 2, *batch.inputs.shape[1:])
    for model in range(3):
        rows = slice(2 * model, 2 * model + 2)
        assert torch.equal(stacked.inputs[model], batch.inputs[rows])
        assert torch.equal(stacked.targets[model], batch.targets[rows])
        assert torch.equal(stacked.roles.role[model], batch.roles.role[rows])
        assert torch.equal(stacked.roles.chain[model], batch.roles.chain[rows])


@pytest.mark.parametrize("task", [Retrieval(hops=2, chains=2), MQAR()])
@pytest.mark.parametrize("count", [0, -1])
def test_there_is_no_dataset_without_examples(task: Task, count: int) -> None:
    with pytest.raises(ConfigError, match=rf"count is {count}; a dataset has at least 1 example"):
        dataset(task, 0, count)
