"""k-hop induction: what it answers about itself."""

import math

import pytest

from hopscope.configs import KHop
from hopscope.facts import Role


def test_every_position_asks_and_the_last_is_described() -> None:
    task = KHop(hops=3, alphabet=5, length=20)
    ends = task.interface()
    assert (ends.tokens, ends.read, ends.length, ends.inputs) == (True, 20, 20, 5)
    assert ends.outputs == 3 * (5 + 1)  # of each hop every token, and none
    assert KHop(hops=3, alphabet=5, curriculum=False).interface().outputs == 6
    assert task.described() == 1


def test_its_roles_are_those_of_the_chain_and_all_others() -> None:
    task = KHop(hops=2)
    assert task.roles() == (*task.graph().roles, Role("other"))
    assert (task.asked_hops(), task.chosen_hops()) == ((1, 2), 2)


def test_guessing_knows_nothing_but_the_alphabet() -> None:
    assert KHop(alphabet=8).guess() == pytest.approx(math.log(8))
