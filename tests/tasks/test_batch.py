"""Batches: examples stay with their roles and answers when they are dealt to models."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from hopscope.configs import MQAR, Retrieval, Task
from hopscope.errors import ConfigError
from hopscope.tasks import Batch, dataset


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


@dataclass(frozen=True)
class Weighed(Batch):
    """Examples of a task of one's own."""

    weight: Tensor


def test_a_tensor_of_ones_own_goes_with_its_examples() -> None:
    drawn = dataset(Retrieval(hops=2, chains=2), 0, 6, "train")
    batch = Weighed(drawn.inputs, drawn.targets, drawn.roles, torch.arange(6.0))
    part = batch.stacked(2).part(slice(1, 3))
    assert isinstance(part, Weighed)
    assert part.weight.tolist() == [[1, 2], [4, 5]]
    other = batch.mapped(torch.zeros_like)
    other.mapped(Tensor.copy_, batch)
    assert torch.equal(other.weight, batch.weight)
    assert torch.equal(other.roles.chain, batch.roles.chain)


@pytest.mark.parametrize("task", [Retrieval(hops=2, chains=2), MQAR()])
@pytest.mark.parametrize("count", [0, -1])
def test_there_is_no_dataset_without_examples(task: Task, count: int) -> None:
    with pytest.raises(ConfigError, match=rf"count is {count}; a dataset has at least 1 example"):
        dataset(task, 0, count)


@pytest.mark.parametrize("models", [0, 3])
def test_a_part_holds_some_of_the_examples_of_every_model(models: int) -> None:
    batch = dataset(Retrieval(hops=2, chains=2), 0, 12, "train")
    whole = batch.stacked(models) if models else batch
    part = whole.part(slice(1, 3))
    rows = [*range(1, 3)] if not models else [4 * model + at for model in range(3) for at in (1, 2)]
    for ours, theirs in (
        (part.inputs, batch.inputs), (part.targets, batch.targets),
        (part.roles.role, batch.roles.role), (part.roles.chain, batch.roles.chain),
    ):  # fmt: skip
        assert torch.equal(ours.flatten(0, 1) if models else ours, theirs[rows])
