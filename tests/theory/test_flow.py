import itertools

import pytest

from hopscope.errors import ConfigError
from hopscope.facts import Role, chain_of_facts, parse_facts
from hopscope.theory import Flow, depths, flow, follow


def replayed(found: Flow, symbol: str) -> bool:
    """Do the readings of the schedule alone, from the input, bring the symbol to the query?"""
    readings = found.schedule(symbol)
    for reading in readings:
        source, destination = map(found.roles.index, (reading.source, reading.destination))
        assert not found.causal or source < destination
    followed = follow(found.graph, readings)
    assert not followed.jumps
    return symbol in followed.holdings[found.roles[-1]]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("heads", [None, 1])
def test_schedules_work_and_take_the_minimum(causal: bool, heads: int | None) -> None:
    for hops in range(1, 17):
        found = flow(chain_of_facts(hops), causal=causal, heads=heads)
        for hop in range(1, hops + 1):
            assert replayed(found, f"x{hop}"), (hops, hop)
            last = max(reading.layer for reading in found.schedule(f"x{hop}"))
            assert last == found.minimum[f"x{hop}"], (hops, hop)


def test_one_head_per_layer_is_enough_and_both_ways_at_most_doubles() -> None:
    """Both ways: 2^t + 1 pieces after t layers, so the 2D + 2 from e[-1] to e[2D] need
    floor(log2 D) + 2; greedy attains it.
    """
    for hops in range(1, 65):
        found = flow(chain_of_facts(hops), heads=1)
        assert found.minimum[f"x{hops}"] == depths(hops).causal, hops
    for hops in range(1, 33):
        found = flow(chain_of_facts(hops), causal=False, heads=1)
        for layer, holding in enumerate(found.holdings):
            assert max(map(len, holding)) <= 2**layer + 1, hops
        assert found.minimum[f"x{hops}"] == hops.bit_length() + 1, hops


def test_any_order_of_facts_can_be_asked() -> None:
    for order in itertools.permutations(range(3)):
        found = flow(chain_of_facts(3), order=order)
        assert (found.minimum["x3"] or 0) >= depths(3).bidirectional, order
        both = flow(chain_of_facts(3), order=order, causal=False)
        assert both.minimum["x3"] == depths(3).bidirectional, order
        assert replayed(found, "x3"), order


def test_conditional_retrieval_and_other_graphs() -> None:
    found = flow(parse_facts(["a->x", "a->y", "x,y->z"]))
    assert found.minimum == {"a": 0, "x": 2, "y": 2, "z": 3}
    assert replayed(found, "z")
    diamond = parse_facts(["a->b", "a->c", "b->d", "c->e", "d,e->f"])
    assert flow(diamond).minimum["f"] == flow(chain_of_facts(3)).minimum["x3"]
    assert flow(diamond, heads=1).minimum["f"] is not None
    several = flow(parse_facts(["f,i->o"]))  # known symbols are one question
    assert several.roles[-1] == Role("query", 1)
    assert several.minimum["o"] == 2
    assert replayed(several, "o")


def test_a_symbol_may_be_called_as_a_code_is() -> None:
    for name, causal in itertools.product(("question", "fact 0", "fact 1"), (True, False)):
        plain, other = (
            flow(parse_facts([f"a->{middle}", f"{middle}->c"]), causal=causal)
            for middle in ("b", name)
        )
        assert other.minimum == {"a": 0, name: 2, "c": plain.minimum["c"]}
        assert list(map(str, other.schedule("c"))) == list(map(str, plain.schedule("c")))


def test_what_cannot_be_asked_is_refused() -> None:
    graph = chain_of_facts(2)
    with pytest.raises(ConfigError, match=r"order is \[0, 0\]; expected each of the facts"):
        flow(graph, order=[0, 0])
    with pytest.raises(ConfigError, match="heads is 2; expected 1"):
        flow(graph, heads=2)
    with pytest.raises(ConfigError, match="the query never holds 'q'; it comes to hold x0, x1, x2"):
        flow(graph).schedule("q")
