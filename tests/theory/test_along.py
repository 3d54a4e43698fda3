"""Information along given readings, and none beside them."""

from hopscope.facts import Role, chain_of_facts
from hopscope.theory import Reading, flow, follow
from hopscope.theory.flow import Code

QUERY, KEY, VALUE = Role("query"), Role("key", 1), Role("value")


def test_without_a_reading_the_symbol_does_not_arrive() -> None:
    graph = chain_of_facts(3)
    schedule = flow(graph).schedule("x3")
    for left_out in schedule:
        found = follow(graph, [reading for reading in schedule if reading != left_out])
        assert "x3" not in found.holdings[QUERY] or found.jumps


def test_a_reading_between_strangers_is_a_jump() -> None:
    graph = chain_of_facts(2)
    reading = Reading(1, QUERY, Role("value", 1))  # shares nothing with the query
    found = follow(graph, [reading])
    assert found.jumps == (reading,)
    assert str(reading) == "layer 1: query reads value 1"
    assert "x2" in found.holdings[QUERY]


def test_readings_of_one_layer_see_what_was_before_it() -> None:
    graph = chain_of_facts(2)
    value, key = Role("value", 0), Role("key", 1)
    together = follow(graph, [Reading(1, value, key), Reading(1, QUERY, value)])
    assert Code("fact 1") not in together.holdings[QUERY]
    in_turn = follow(graph, [Reading(1, value, key), Reading(2, QUERY, value)])
    assert Code("fact 1") in in_turn.holdings[QUERY]
