"""Hypotheses about rows of maps written by hand: which there are, and which comes first."""

import numpy as np
import pytest

from hopscope.circuits import RoleMaps, aim
from hopscope.circuits.hypotheses import hypotheses, strongest
from hopscope.circuits.mechanism import BY_POSITION, ITSELF, PREVIOUS, UNIFORM
from hopscope.configs import Discovery
from hopscope.facts import Role

KEY, VALUE, QUERY = Role("key"), Role("value"), Role("query")
ROLES = (KEY, VALUE, QUERY)
ROW = ((0, 0), QUERY)
SETTINGS = Discovery()


def maps(
    own: tuple[float, ...], others: tuple[float, ...] = (0, 0, 0), itself: float = 0.0,
    previous: float = 0.0,
) -> RoleMaps:  # fmt: skip
    """One head, of which the query's row is given."""
    pairs = np.zeros((2, 1, 1, 3, 3), np.float32)
    pairs[0, 0, 0, 2], pairs[1, 0, 0, 2] = own, others
    alone = np.zeros((2, 1, 1, 3), np.float32)
    alone[0, 0, 0, 2], alone[1, 0, 0, 2] = itself, previous
    return RoleMaps(ROLES, pairs[0], pairs[1], alone[0], alone[1])


def test_what_gets_most_of_the_attention_comes_first() -> None:
    simple, position, rest = hypotheses(maps((0.1, 0.9, 0.0)), ROW, SETTINGS)
    assert simple[:2] == [aim("own", VALUE), UNIFORM]
    assert position == [BY_POSITION]
    assert aim("place", VALUE) in rest


def test_a_role_that_is_noticed_comes_behind_looking_everywhere() -> None:
    simple, _, _ = hypotheses(maps((0.3, 0.3, 0.0), others=(0.4, 0, 0)), ROW, SETTINGS)
    assert simple[0] == UNIFORM
    assert {aim("own", KEY), aim("own", VALUE), aim("all", KEY)} <= set(simple)
    assert aim("others", KEY) not in simple


def test_positions_are_proposed_where_they_are_looked_at() -> None:
    simple, _, _ = hypotheses(maps((0.25, 0.25, 0.5), itself=0.5, previous=0.25), ROW, SETTINGS)
    assert {ITSELF, PREVIOUS} <= set(simple)
    assert aim("own", QUERY) not in simple  # its own role is the row itself
    simple, _, _ = hypotheses(maps((0.9, 0, 0.1), itself=0.1, previous=0.1), ROW, SETTINGS)
    assert not {ITSELF, PREVIOUS} & set(simple)


def test_mixtures_leave_out_what_gets_too_little_and_add_up() -> None:
    given = maps((0.6, 0.3, 0.02), others=(0.08, 0, 0))
    simple, _, rest = hypotheses(given, ROW, SETTINGS)
    (two,) = [its for its in simple if len(its.parts) == 2]
    assert [(target.role, round(weight, 3)) for target, weight in two.parts] == [
        (KEY, 0.667), (VALUE, 0.333),
    ]  # fmt: skip
    (three,) = [its for its in rest if len(its.parts) == 3]
    assert sum(weight for _, weight in three.parts) == pytest.approx(1)
    assert min(weight for _, weight in three.parts) >= SETTINGS.mixed


def test_no_aim_is_proposed_twice() -> None:
    waves = hypotheses(maps((0.5, 0.5, 0.0)), ROW, SETTINGS)
    every = [its for wave in waves for its in wave]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize(
    ("own", "source"),
    [((0.6, 0.4, 0.0), KEY), ((0.4, 0.3, 0.3), None), ((0.1, 0.1, 0.8), None)],
)
def test_the_strongest_role_is_one_with_half_of_the_attention_and_another_than_its_own(
    own: tuple[float, ...], source: Role | None
) -> None:
    assert strongest(maps(own), ROW, 0.5) == source
