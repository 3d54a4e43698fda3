import pytest

from hopscope.errors import ConfigError
from hopscope.facts import Fact, FactGraph, Role, chain_of_facts, parse_facts, parse_role


def test_a_chain_has_one_fact_per_hop() -> None:
    graph = chain_of_facts(3)
    assert [str(fact) for fact in graph.facts] == ["x0->x1", "x1->x2", "x2->x3"]
    assert graph.known == ("x0",)
    assert graph.symbols == ("x0", "x1", "x2", "x3")
    assert graph.hops == (1, 2, 3)


def test_roles_are_keys_and_values_then_queries() -> None:
    graph = parse_facts(["a->x", "a->y", "x,y->z"])
    assert [str(role) for role in graph.roles] == [
        "key 0", "value 0", "key 1", "value 1", "key 2", "key 2.1", "value 2", "query",
    ]  # fmt: skip


def test_facts_are_sorted_into_the_order_of_look_ups() -> None:
    graph = parse_facts(["c->d", "b->c", "a,k->b"])
    assert [fact.value for fact in graph.facts] == ["b", "c", "d"]
    assert graph.known == ("a", "k")
    assert str(Role("query", 1)) == "query 1"


def test_what_is_no_fact_graph_is_refused() -> None:
    for facts, text in (
        (["a->b", "b->a"], "the facts a->b, b->a need each other"),
        (["a->b", "c->b"], "two facts lead to 'b'"),
        (["a b"], "cannot read the fact 'a b'"),
        (["a,->b"], "cannot read the fact"),
        (["a->b,c"], "cannot read the fact 'a->b,c': write keys and one value"),
        (["a->b->c"], "cannot read the fact 'a->b->c'"),
        (["a,a->b"], "names a key twice"),
        ([], "at least one fact"),
    ):
        with pytest.raises(ConfigError, match=text):
            parse_facts(facts)
    with pytest.raises(ConfigError, match="hops is 0"):
        chain_of_facts(0)
    with pytest.raises(ConfigError, match="the fact b->c needs 'b' before a fact leads to it"):
        FactGraph((Fact(("b",), "c"), Fact(("a",), "b")))


def test_longest_way_counts_as_hops() -> None:
    graph = FactGraph((Fact(("a",), "b"), Fact(("b",), "c"), Fact(("a", "c"), "d")))
    assert graph.hops == (1, 2, 3)


def test_a_role_is_read_from_its_text() -> None:
    own = (Role("other"), Role("count token"), Role("letter", 2), Role("x-1st", 0, 1))
    own += (Role("S1"), Role("S_2", 1))
    for role in (*parse_facts(["a->x", "a->y", "x,y->z"]).roles, *own):
        assert parse_role(str(role)) == role
    for text in ("1 key", "value x", "", "a<b", "letter 1 "):
        with pytest.raises(ConfigError, match=f"there is no role '{text}': roles are query, key 0"):
            parse_role(text)
    for name in ("", "key 1", "value x", "a<b", "1st", "letter "):  # could not be read again
        with pytest.raises(ConfigError, match="a role cannot be called"):
            Role(name)
    for text, meant in (
        ("key", "key 0"),
        ("key0", "key 0"),
        ("query_2", "query 2"),
        ("decoy key-1.1", "decoy key 1.1"),
    ):
        with pytest.raises(ConfigError, match=f"no role '{text}': did you mean '{meant}'"):
            parse_role(text)
    with pytest.raises(ConfigError, match="a role cannot be called 'value1'"):
        Role("value1")
