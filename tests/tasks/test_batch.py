"""Batches: examples stay with their roles and answers when they are dealt to models."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from hopscope.configs import MQAR, Retrieval
from hopscope.errors import ConfigError
from hopscope.tasks import Batch, dataset


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


def test_there_is_no_dataset_without_examples() -> None:
    for task, count in ((Retrieval(hops=2, chains=2), 0), (MQAR(), -1)):
        with pytest.raises(ConfigError, match=f"count is {count}; a dataset has at least 1 ex"):
            dataset(task, 0, count)


@pytest.mark.parametrize("models", [0, 3])
def test_a_part_holds_some_of_the_examples_of_every_model(models: int) -> None:
    batch = dataset(Retrieval(hops=2, chains=2), 0, 12, "train")
    whole = batch.stacked(models) if models else batch
    assert len(batch) == 12
    for rows in (slice(0, 4), slice(1, 3)):
        part = whole.part(rows)
        taken = [4 * model + at for model in range(max(1, models)) for at in range(4)[rows]]
        for ours, theirs in (
            (part.inputs, batch.inputs), (part.targets, batch.targets),
            (part.roles.role, batch.roles.role), (part.roles.chain, batch.roles.chain),
        ):  # fmt: skip
            assert torch.equal(ours.flatten(0, 1) if models else ours, theirs[taken])
