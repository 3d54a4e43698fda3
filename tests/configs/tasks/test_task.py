"""What every task has to answer, and what it may leave out."""

from hopscope.configs import MQAR, ConditionalRetrieval, FactTask, Induction, KHop, Retrieval
from hopscope.configs.model import Interface
from hopscope.facts import FactGraph, Role


def test_answers_fit_together() -> None:
    for task in (Retrieval(), Induction(), ConditionalRetrieval(), KHop(), MQAR()):
        ends, asked = task.interface(), task.asked_hops()
        assert len(set(asked)) == len(asked) > 0 < min(asked), task.kind
        assert ends.outputs % len(asked) == 0, task.kind
        assert 0 < ends.read <= ends.length, task.kind
        assert len(set(task.roles())) == len(task.roles()), task.kind


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
