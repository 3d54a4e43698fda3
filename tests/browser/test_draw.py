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
    """To the bit: so are the random numbers. And the last are the same without the first."""
    count, last = 40, 3
    page.goto(f"{site}/blank")
    for name, task in TASKS.items():
        for sample in (5, 2**31 - 1):
            asked = [task_tables(task), sample, count, 0]
            inputs, targets, role, chain, asker = page.evaluate(DRAW, asked)
            batch = dataset(task, sample, count, "validation")
            read = task.labelled_positions() or 0
            wanted = batch.targets[:, -read:]
            assert torch.equal(torch.tensor(inputs).float(), batch.inputs.flatten().float()), name
            assert torch.equal(torch.tensor(targets).float(), wanted.flatten().float()), name
            assert role == batch.roles.role.flatten().tolist(), name
            assert chain == batch.roles.chain.flatten().tolist(), name
            wanted = askers(task, sample, count, "validation")[:, -read:]
            assert asker == wanted.flatten().tolist(), name
        late, *_ = page.evaluate(DRAW, [task_tables(task), 2**31 - 1, last, count - last])
        assert late == inputs[-len(late) :] != inputs[: len(late)], name
