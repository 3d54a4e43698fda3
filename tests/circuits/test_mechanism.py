"""Mechanisms as data: what they say, and what they refuse."""

import pickle

import pytest

from hopscope.circuits import Mechanism, aim
from hopscope.circuits.mechanism import AS_IS, ITSELF, PREVIOUS, UNIFORM, Aim, Target
from hopscope.errors import CircuitError
from hopscope.facts import Role

KEY, VALUE, QUERY = Role("key", 1), Role("value", 0), Role("query")


def test_targets_and_aims_that_make_no_sense_are_refused() -> None:
    with pytest.raises(CircuitError, match="the target 'own' needs a role"):
        Target("own")
    with pytest.raises(CircuitError, match="the target 'itself' takes no role, got key 1"):
        Target("itself", KEY)
    with pytest.raises(CircuitError, match=r"the weights of an aim add up to 0.5; expected 1"):
        Aim(((Target("own", KEY), 0.5),))
    with pytest.raises(CircuitError, match="cannot be mixed"):
        Aim(((Target("model"), 0.5), (Target("itself"), 0.5)))
    with pytest.raises(CircuitError, match="gives one role two aims"):
        Mechanism(((KEY, UNIFORM), (KEY, ITSELF)))


READS = Mechanism(((QUERY, aim("own", VALUE)), (KEY, AS_IS)), ITSELF)


def test_every_role_has_its_aim_or_that_of_the_rest() -> None:
    assert READS.readers == (KEY, QUERY)  # sorted, so that the same mechanism is equal
    assert READS.of(QUERY) == aim("own", VALUE)
    assert READS.of(VALUE) == ITSELF
    assert Mechanism(((KEY, AS_IS), (QUERY, aim("own", VALUE))), ITSELF) == READS


def test_changes_give_new_mechanisms() -> None:
    assert READS.with_aim(QUERY, UNIFORM).of(QUERY) == UNIFORM
    assert READS.with_aim(VALUE, PREVIOUS).readers == (KEY, QUERY, VALUE)
    assert READS.without(QUERY) == Mechanism(((KEY, AS_IS),), ITSELF)
    assert READS.without(VALUE) == READS
    assert READS.of(QUERY) == aim("own", VALUE)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (READS, "key 1 ← as it is; query ← value 0; else itself"),
        (Mechanism(rest=PREVIOUS), "previous"),
        (aim("others", KEY), "key 1 of other chains"),
        (aim("elsewhere", VALUE), "all but value 0"),
        (aim("place", VALUE), "by place of value 0"),
        (Aim(((Target("own", KEY), 0.75), (Target("itself"), 0.25))), "0.75 key 1 + 0.25 itself"),
    ],
)
def test_what_they_say(said: object, text: str) -> None:
    assert str(said) == text


def test_copies_hash_as_they_do_where_they_are() -> None:
    """Strings hash otherwise in every process, so a copy may not bring its hash along."""
    hash(READS)
    assert "_hash" in READS.__dict__
    again = pickle.loads(pickle.dumps(READS))
    assert again == READS
    assert "_hash" not in again.__dict__
    assert hash(again) == hash(READS)
