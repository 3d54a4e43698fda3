"""The page tells examples in words as the command line does: drawn, in another order, typed."""

from typing import Any

import torch

from hopscope.configs import MQAR, ConditionalRetrieval, KHop, Retrieval, Task
from hopscope.tasks import spelled
from hopscope.web.tables import task_tables

SPELLED = """async ([tables, asked]) => {
  const { spelled } = await import("/spelled.js");
  try {
    const { inputs, role, chain, symbol, questions } = spelled(tables, asked);
    const arrays = Object.entries({ inputs, role, chain, symbol })
      .map(([name, its]) => [name, [...its]]);
    return { ...Object.fromEntries(arrays), questions };
  } catch (error) { return error.message; }
}"""
TASKS: dict[str, Task] = {
    "retrieval": Retrieval(hops=2),
    "shuffled, last hop alone": Retrieval(hops=2, chains=3, order="shuffled", curriculum=False),
    "decoys": ConditionalRetrieval(decoys=1, chains=3),
    "two known symbols": ConditionalRetrieval(facts=("a,b->x", "x->y"), chains=2),
    "k hops": KHop(hops=2, alphabet=4, length=12),
    "k hops, last alone": KHop(hops=2, alphabet=4, length=12, curriculum=False),
    "recall with blanks": MQAR(pairs=3, queries=2, alphabet=12, length=16, filler="blank"),
    "recall": MQAR(pairs=3, alphabet=12, length=16),
}


def told(page: Any, task: Task, **asked: Any) -> Any:
    asked = {"sample": 5, "index": 3, **asked}
    return page.evaluate(SPELLED, [task_tables(task), asked])


def same(page: Any, task: Task, words: tuple[str, ...] | None = None, **order: int) -> None:
    """The page and the command line say the same of one example."""
    mine = told(page, task, **order, **({} if words is None else {"words": [*words]}))
    its = spelled(task, 5, 3, words, **order)
    names = (*task_tables(task)["names"], "·")
    assert tuple(names[number] for number in mine["symbol"]) == its.texts
    assert torch.equal(torch.tensor(mine["inputs"]).float(), its.inputs.flatten().float())
    assert mine["role"] == its.roles.role.tolist()
    assert mine["chain"] == its.roles.chain.tolist()
    questions = [
        (each["position"], each["chain"], tuple(each["truth"])) for each in mine["questions"]
    ]
    assert questions == [(asked.position, asked.chain, asked.truth) for asked in its.asked]


def test_it_is_what_the_command_line_tells(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    for task in TASKS.values():
        same(page, task)
        same(page, task, order=8)
        shown = spelled(task, 5, 3).texts
        for place in range(0, len(shown), 3):  # what stands elsewhere: truths are lost and won
            other = (*shown[:place], shown[place - 1], *shown[place + 1 :])
            same(page, task, other)
            same(page, task, other, order=8)


def test_a_typed_sequence(page: Any, site: str) -> None:
    """The last a: hop 1 leads to c (after the a at 3), hop 2 to a (after the c at 0),
    hop 3 nowhere. What cannot be typed is one line.
    """
    page.goto(f"{site}/blank")
    task = KHop(hops=3, alphabet=3, length=6)
    found = told(page, task, words=[*"cabaca"])
    a, c, none = 0, 2, 3
    assert found["questions"] == [{"position": 5, "chain": 0, "truth": [c, a, none]}]
    roles = [task_tables(task)["roles"][number] for number in found["role"]]
    assert roles == ["key 1", "value 1", "other", "key 0", "value 0", "query"]
    for words, said in (
        ("abcdef", 'there is no symbol "d" here; the symbols are a, b, c'),
        ("abcab", "the sequence has 5 symbols; expected 6"),
    ):
        assert told(page, task, words=[*words]) == said
