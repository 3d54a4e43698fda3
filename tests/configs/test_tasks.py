"""What tasks answer about themselves; tests/tasks holds the rest to the examples drawn."""

import math

import pytest

from hopscope.configs import MQAR, ConditionalRetrieval, FactTask, Induction, KHop, Retrieval
from hopscope.configs.model import Interface
from hopscope.facts import FactGraph, Role


class Bare(FactTask):
    """A task with what every task must have."""

    def graph(self) -> FactGraph | None:
        return None

    def roles(self) -> tuple[Role, ...]:
        return (Role("other"),)

    def interface(self) -> Interface:
        return Interface(tokens=True, inputs=2, length=1, read=1, outputs=2)

    def chance(self) -> float:
        return 1.0

    def asked_hops(self) -> tuple[int, ...]:
        return (1,)


def test_a_task_without_hops_or_a_single_question_says_so() -> None:
    bare = Bare()
    assert (bare.chosen_hops(), bare.labelled_positions(), bare.asks_every_hop()) == (None,) * 3
    assert (bare.symbol_names(), bare.fact_order()) == ((), None)


def test_without_curriculum_the_last_hop_is_asked_alone() -> None:
    for task in (Retrieval(hops=3), KHop(hops=3)):
        last = task.model_copy(update={"curriculum": False})
        assert (task.asked_hops(), last.asked_hops()) == ((1, 2, 3), (3,))
        assert (task.asks_every_hop(), last.asks_every_hop()) == (True, False)
        assert task.interface().outputs == 3 * last.interface().outputs
        assert task.chosen_hops() == 3
    assert ConditionalRetrieval().asked_hops() == (1, 2, 3)


def test_induction_is_retrieval_over_one_hop() -> None:
    one, other = Induction(), Retrieval(hops=1)
    assert (one.graph(), one.roles(), one.interface(), one.chance()) == (
        other.graph(), other.roles(), other.interface(), other.chance(),
    )  # fmt: skip
    assert (one.chosen_hops(), other.chosen_hops()) == (None, 1)


def test_chance_with_tokens_knows_the_tokens_that_are_possible() -> None:
    assert KHop(alphabet=8).chance() == pytest.approx(math.log(8))
    assert MQAR(pairs=6).chance() == pytest.approx(math.log(6))


def test_the_vocabulary_has_a_class_or_a_token_more() -> None:
    assert KHop(hops=3, alphabet=5).interface().outputs == 3 * (5 + 1)  # "none"
    assert MQAR(alphabet=10).interface().inputs == 10
    assert MQAR(alphabet=10, filler="blank").interface().inputs == 11


def test_facts_in_another_order() -> None:
    orders = [Retrieval().ordered(order).fact_order() for order in ("forward", "shuffled")]
    assert orders == [(0, 1, 2), None]
