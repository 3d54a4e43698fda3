"""The one table of tasks: every kind is in it, and nobody else asks which task it has."""

import hashlib
import re
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

import hopscope
from hopscope.configs import MQAR, ConditionalRetrieval, Induction, KHop, Retrieval, Task
from hopscope.configs.tasks import KINDS
from hopscope.tasks import (
    Batch,
    Sampler,
    answer_losses,
    examples,
    kinds,
    question_losses,
    sampler_of,
)

FIRST_EXAMPLES: list[tuple[Task, str]] = [
    (Retrieval(), "0ec23e6834decb3d"),
    (
        Retrieval(
            hops=2, chains=3, dim=6, symbols="sphere", position="pair", order="shuffled",
            curriculum=False, base=10,
        ),
        "2c527c2216e4df04",
    ),
    (Retrieval(hops=2, chains=2, dim=6, symbols="one-hot", order="forward"), "30bc79968ab30308"),
    (Induction(), "a7538557da3aab35"),
    (ConditionalRetrieval(), "489da81e30c90a7d"),
    (ConditionalRetrieval(decoys=2, order="shuffled"), "8a78f08b50275ee0"),
    (KHop(), "00acef99920383f7"),
    (KHop(hops=3, alphabet=4, length=20, curriculum=False), "15da64b1bb49549d"),
    (MQAR(), "133ed54d171d9246"),
    (
        MQAR(pairs=3, queries=2, alphabet=17, length=20, power=1.0, filler="blank"),
        "b34676affb9ab355",
    ),
]  # fmt: skip
"""Tasks, and a hash of their first examples as they were when the task was added."""

TASKS = [task for task, _ in FIRST_EXAMPLES]


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


def test_the_first_examples_stay_the_same_to_the_bit() -> None:
    """A run is named by its config, so the examples of a config may never change."""
    assert {task: digest(task) for task, _ in FIRST_EXAMPLES} == dict(FIRST_EXAMPLES)


def test_every_kind_of_task_is_drawn_and_hashed() -> None:
    assert set(kinds.BY_KIND) == set(KINDS) == {task.kind for task in TASKS}
    assert all(isinstance(sampler_of(kind()), Sampler) for kind in KINDS.values())
    assert all(isinstance(kinds.speller_of(kind()), kinds.Speller) for kind in KINDS.values())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_what_a_task_says_of_itself_is_what_is_drawn(task: Task) -> None:
    ends, table = task.interface(), task.roles()
    batch = examples(sampler_of(task), 0, torch.arange(64))
    assert batch.inputs.shape[1] == ends.length
    if ends.tokens:
        assert 0 <= int(batch.inputs.min()) <= int(batch.inputs.max()) < ends.inputs
    else:
        assert batch.inputs.shape[2] == ends.inputs
    assert batch.roles.role.unique().tolist() == list(range(len(table)))
    graph = task.graph()
    assert graph is not None
    assert set(graph.roles) <= set(table)
    assert max(task.asked_hops()) == len(graph.facts)
    assert task.guess() > 0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_every_example_has_a_loss_for_every_hop(task: Task) -> None:
    ends, hops = task.interface(), len(task.asked_hops())
    batch = examples(sampler_of(task), 0, torch.arange(6))
    outputs = torch.randn(3, 6, ends.read, ends.outputs)
    several = answer_losses(task, outputs, batch)
    assert several.shape == (3, *batch.targets.shape[:2], hops)
    for variant in range(3):
        assert torch.allclose(several[variant], answer_losses(task, outputs[variant], batch))
    described = several if task.described() is None else several[:, :, -task.described() :]
    assert torch.allclose(question_losses(task, outputs, batch), described.mean(2))


def test_a_task_is_known_to_its_own_files_and_the_tables_alone() -> None:
    """Nobody asks which task it has. Associative recall, which was added last, stands for all."""
    package = Path(hopscope.__file__).parent
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    sources = {name: path.read_text() for name, path in files.items()}
    kinds = "|".join([*(kind.__name__ for kind in KINDS.values()), "VectorTask"])
    asks = rf"isinstance\([^)]*\b({kinds})\b|case ({kinds})\(|"
    asks += r"(getattr|hasattr)\(\s*(self\.)?(\w+\.)*(task|questions)\b"
    assert [name for name, text in sources.items() if re.search(asks, text)] == []
    assert {name for name, text in sources.items() if re.search("mqar", text, re.IGNORECASE)} == {
        "configs/tasks/mqar.py", "tasks/mqar.py", "tasks/spelled_mqar.py",
        "configs/tasks/__init__.py", "tasks/kinds.py",  # the tables
        "__init__.py", "configs/__init__.py", "papers/tasks.py",
    }  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_example_i_does_not_depend_on_its_company(task: Task) -> None:
    sampler, index = sampler_of(task), torch.tensor([4, 0, 9, 2**40])
    together = parts(examples(sampler, 7, index))
    for row in range(len(index)):
        alone = parts(examples(sampler, 7, index[row : row + 1]))
        for one, whole in zip(alone, together, strict=True):
            assert torch.equal(one[0], whole[row])


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
