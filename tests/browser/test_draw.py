"""The page draws the command line's own examples: inputs, targets, roles and chains are equal."""

from typing import Any

import torch

from hopscope.configs import MQAR, ConditionalRetrieval, Induction, KHop, Retrieval, Task
from hopscope.tasks import askers, dataset
from hopscope.web.tables import task_tables

DRAW = """async ([tables, sample, count, from]) => {
  const { drawn } = await import("/draw.js");
  const exam = drawn(tables, sample, count, from);
  return ["inputs", "targets", "role", "chain", "askers"].map((name) => [...exam[name]]);
}"""

TASKS: dict[str, Task] = {
    "retrieval": Retrieval(hops=3),
    "one code for a pair": Retrieval(hops=2, position="pair", base=10.0),
    "forward, last hop alone": Retrieval(hops=2, order="forward", curriculum=False),
    "shuffled, on a sphere": Retrieval(hops=2, order="shuffled", symbols="sphere", dim=6),
    "one-hot": Induction(chains=3, dim=8, symbols="one-hot"),
    "conditional": ConditionalRetrieval(),
    "conditional, ragged, with decoys": ConditionalRetrieval(
        order="shuffled", decoys=2, position="pair"
    ),
    "two known symbols": ConditionalRetrieval(facts=("a,b->c", "c->d")),
    "k hops": KHop(hops=3, alphabet=4, length=24),
    "k hops, few letters": KHop(hops=5, alphabet=2, length=9, curriculum=False),
    "recall": MQAR(pairs=4, length=32),
    "recall with blanks": MQAR(pairs=3, queries=2, alphabet=16, length=20, power=1, filler="blank"),
}


def test_examples_are_those_of_the_command_line(page: Any, site: str) -> None:
    count = 40
    page.goto(f"{site}/blank")
    for name, task in TASKS.items():
        inputs, targets, role, chain, asker = page.evaluate(DRAW, [task_tables(task), 5, count, 0])
        batch = dataset(task, 5, count, "validation")
        last = task.described() or 0
        wanted = batch.targets[:, -last:]
        assert torch.equal(torch.tensor(inputs).float(), batch.inputs.flatten().float()), name
        assert torch.equal(torch.tensor(targets).float(), wanted.flatten().float()), name
        assert role == batch.roles.role.flatten().tolist(), name
        assert chain == batch.roles.chain.flatten().tolist(), name
        wanted = askers(task, 5, count, "validation")[:, -last:]
        assert asker == wanted.flatten().tolist(), name


def test_later_examples_are_the_same_as_after_the_first(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    tables = task_tables(TASKS["conditional, ragged, with decoys"])
    every, late = (page.evaluate(DRAW, [tables, 1, *which])[0] for which in ((6, 0), (2, 4)))
    assert late == every[-len(late) :]
    assert not torch.equal(torch.tensor(late), torch.tensor(every[: len(late)]))
