"""What every task has to answer, and what it may leave out."""

import pytest

from hopscope.configs import MQAR, ConditionalRetrieval, FactTask, Induction, KHop, Retrieval
from hopscope.configs.model import Interface
from hopscope.facts import FactGraph, Role

TASKS = [Retrieval(), Induction(), ConditionalRetrieval(), KHop(), MQAR()]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_answers_fit_together(task: FactTask) -> None:
    ends, asked = task.interface(), task.asked_hops()
    assert len(set(asked)) == len(asked) > 0
    assert min(asked) >= 1
    assert ends.outputs % len(asked) == 0
    assert 0 < ends.read <= ends.length
    assert len(set(task.roles())) == len(task.roles())
    assert task.guess() > 0
    graph = task.graph()
    assert graph is not None
    assert set(graph.roles) <= set(task.roles())


def test_a_task_without_hops_or_a_single_question_says_so() -> None:
    class Bare(FactTask):
        def graph(self) -> FactGraph | None:
            return None

        def roles(self) -> tuple[Role, ...]:
            return (Role("other"),)

        def interface(self) -> Interface:
            return Interface(tokens=True, inputs=2, length=1, read=1, outputs=2)

        def guess(self) -> float:
            return 1.0

        def asked_hops(self) -> tuple[int, ...]:
            return (1,)

    bare = Bare()
    assert (bare.chosen_hops(), bare.described(), bare.asks_every_hop()) == (None, None, None)


def test_a_task_that_answers_nothing_is_none() -> None:
    with pytest.raises(TypeError, match="abstract"):
        FactTask()  # type: ignore[abstract]
