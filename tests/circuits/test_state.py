"""States: what can be done to rows, and that nothing is done to others."""

from hopscope.circuits import Mechanism, aim
from hopscope.circuits.mechanism import AS_IS, ITSELF
from hopscope.circuits.state import State
from hopscope.facts import Role

QUERY, KEY, VALUE = Role("query"), Role("key"), Role("value")
ONE, OTHER = (0, 0), (1, 0)
START = State({head: Mechanism(((QUERY, AS_IS), (VALUE, AS_IS)), ITSELF) for head in (ONE, OTHER)})


def test_a_row_looks_elsewhere_if_it_has_a_source_and_does_nothing_if_not() -> None:
    state = START.looking_elsewhere([(ONE, QUERY), (ONE, VALUE)], {(ONE, QUERY): VALUE})
    assert state[ONE] == Mechanism(((QUERY, aim("elsewhere", VALUE)),), ITSELF)
    assert state[OTHER] == START[OTHER]
    assert state.live == [(OTHER, QUERY), (OTHER, VALUE)]
    assert state.idle == []  # to look elsewhere is still an aim


def test_a_row_that_does_nothing_follows_the_rest_of_its_head() -> None:
    state = START.doing_nothing([(ONE, QUERY), (ONE, VALUE)])
    assert state[ONE] == Mechanism((), ITSELF)
    assert state.idle == [ONE]
    assert START.only([(OTHER, QUERY), (OTHER, VALUE)]) == state


def test_a_row_takes_another_aim() -> None:
    state = START.looking_at([(OTHER, QUERY)], aim("own", KEY))
    assert state[OTHER].of(QUERY) == aim("own", KEY)
    assert state[OTHER].of(VALUE) == AS_IS


def test_a_head_that_is_given_back_is_no_longer_changed() -> None:
    assert dict(START.given_back(ONE).ablation.changes) == {OTHER: START[OTHER]}
    assert State().ablation.changes == ()


def test_changes_give_new_states() -> None:
    before = dict(START.mechanisms)
    START.looking_elsewhere([(ONE, QUERY)], {})
    START.doing_nothing([(ONE, QUERY)])
    START.looking_at([(ONE, QUERY)], ITSELF)
    assert START.mechanisms == before
