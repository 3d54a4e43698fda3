"""Every task: pinned examples, shapes as the task says, arrays; nothing else asks which it is."""

import hashlib
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from every_task import FIRST_EXAMPLES, TASKS
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from hopscope.configs import MQAR, KHop, Retrieval, Task
from hopscope.configs.tasks import TASK_KINDS
from hopscope.errors import ConfigError
from hopscope.tasks import Batch, askers, dataset, example_arrays, examples, rendered, sampler_of
from hopscope.tasks.samplers import SAMPLERS


@dataclass(frozen=True)
class Weighed(Batch):
    """Examples with one more tensor, as a user's own task may have."""

    weight: Tensor


def parts(batch: Batch) -> list[Tensor]:
    return [batch.inputs, batch.targets, batch.roles.role, batch.roles.chain]


def digest(task: Task) -> str:
    """A hash of the first 16 examples of both streams: every number, shape and type."""
    seen = hashlib.sha256()
    for stream in ("train", "validation"):
        for part in parts(examples(sampler_of(task), 3, torch.arange(16), stream)):
            seen.update(f"{part.dtype} {tuple(part.shape)}".encode())
            seen.update(part.contiguous().numpy().tobytes())
    return seen.hexdigest()[:16]


def test_the_first_examples_of_every_kind_stay_the_same_to_the_bit() -> None:
    """A run is named by its config, so the examples of a config may never change."""
    assert {task: digest(task) for task, _ in FIRST_EXAMPLES} == dict(FIRST_EXAMPLES)
    assert set(SAMPLERS) == set(TASK_KINDS) == {task.kind for task in TASKS}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_examples_are_as_the_task_says(task: Task) -> None:
    ends, table, hops = task.interface(), task.roles(), task.asked_hops()
    batch, graph = examples(sampler_of(task), 0, torch.arange(64)), task.graph()
    assert batch.inputs.shape[1] == ends.length >= ends.read
    if ends.tokens:
        assert 0 <= int(batch.inputs.min()) <= int(batch.inputs.max()) < ends.inputs
    else:
        assert batch.inputs.shape[2] == ends.inputs
    assert batch.roles.role.unique().tolist() == list(range(len(table)))
    assert set(graph.roles) <= set(table)
    assert sorted(set(hops)) == list(hops)
    assert hops[-1] == len(graph.facts)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_arrays_hold_the_first_validation_examples(task: Task) -> None:
    arrays, batch = example_arrays(task, 7, 5), dataset(task, 7, 5, "validation")
    named = {"inputs": batch.inputs, "targets": batch.targets}
    named |= {"role": batch.roles.role, "chain": batch.roles.chain}
    named |= {"asker": askers(task, 7, 5, "validation")}
    for name, tensor in named.items():
        assert np.array_equal(arrays[name], tensor.numpy()), name
        assert arrays[name].itemsize <= 4, name
    texts = [rendered(task, 7, index).texts for index in range(5)]
    names = sampler_of(task).names
    assert [tuple(names[symbol] for symbol in row) for row in arrays["symbol"]] == texts
    if "vectors" in arrays:
        own = np.take_along_axis(arrays["vectors"], arrays["symbol"][..., None], axis=1)
        assert np.array_equal(own, arrays["inputs"][..., : own.shape[-1]])
    else:
        assert np.array_equal(arrays["symbol"], arrays["inputs"])
    assert len(example_arrays(task, 7)["role"]) == 256


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_example_i_does_not_depend_on_its_company(task: Task) -> None:
    sampler, index = sampler_of(task), torch.tensor([4, 0, 9, 2**40])
    together = parts(examples(sampler, 7, index))
    for row in range(len(index)):
        alone = parts(examples(sampler, 7, index[row : row + 1]))
        for one, whole in zip(alone, together, strict=True):
            assert torch.equal(one[0], whole[row])


def test_the_dataset_is_its_examples_whatever_the_threads() -> None:
    task, some, before = (
        Retrieval(hops=2),
        torch.tensor([0, 4_095, 4_096, 4_999]),
        torch.get_num_threads(),
    )
    picked = parts(examples(sampler_of(task), 3, some, "validation"))
    try:
        for threads in (1, 4):
            torch.set_num_threads(threads)
            whole = parts(dataset(task, 3, 5_000, "validation"))
            assert all(map(torch.equal, [part[some] for part in whole], picked))
    finally:
        torch.set_num_threads(before)
    with pytest.raises(ConfigError, match="count is 0; a dataset has at least 1 example"):
        dataset(task, 0, 0)


@pytest.mark.parametrize("models", [0, 3])
def test_a_part_of_a_batch_has_some_examples_of_every_model(models: int) -> None:
    drawn = dataset(Retrieval(hops=2, chains=2), 0, 12)
    batch = Weighed(drawn.inputs, drawn.targets, drawn.roles, torch.arange(12.0))
    whole = batch.stacked(models) if models else batch
    part = whole.part(slice(1, 3))
    assert isinstance(part, Weighed)
    taken = [4 * model + row for model in range(max(1, models)) for row in (1, 2)]
    for ours, theirs in zip(
        [*parts(part), part.weight], [*parts(batch), batch.weight], strict=True
    ):
        assert torch.equal(ours.flatten(0, 1) if models else ours, theirs[taken])
    other = batch.mapped(torch.zeros_like)
    other.mapped(Tensor.copy_, batch)
    assert torch.equal(other.weight, batch.weight)
    assert torch.equal(other.roles.chain, batch.roles.chain)


class Peak(TorchDispatchMode):
    """The most bytes that tensors made within it held at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self.tensors = Counter[int]()
        """That share a piece of memory, by where it begins."""

    def __torch_dispatch__(
        self, function: Callable[..., Any], _: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for each in tree_iter(made):
            if isinstance(each, Tensor):
                self._count(each.untyped_storage(), 1)
                weakref.finalize(each, self._count, each.untyped_storage(), -1)
        self.most = max(self.most, self.now)
        return made

    def _count(self, memory: torch.UntypedStorage, tensors: int) -> None:
        before = self.tensors[memory.data_ptr()] > 0
        self.tensors[memory.data_ptr()] += tensors
        after = self.tensors[memory.data_ptr()] > 0
        self.now += (after - before) * memory.nbytes()


@pytest.mark.parametrize(
    "task", [*TASKS, KHop(length=512), MQAR(pairs=8, alphabet=8192, length=64)], ids=repr
)
def test_an_example_takes_the_memory_that_its_sampler_says(task: Task) -> None:
    sampler, index = sampler_of(task), torch.arange(64)
    with Peak() as peak:
        examples(sampler, 0, index)
    assert 0.5 < peak.most / len(index) / sampler.example_bytes < 2
