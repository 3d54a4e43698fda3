"""Necessity: what is removed, and what is put back so that the rest shows what it is worth."""

from collections.abc import Sequence

import numpy as np
import pytest

from hopscope.circuits import Ablator, Mechanism, aim
from hopscope.circuits.draft import Conditions, Draft, drafted
from hopscope.circuits.limits import Limits
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, UNIFORM
from hopscope.circuits.necessity import settled, strengths
from hopscope.circuits.search import Search
from hopscope.circuits.state import State
from hopscope.configs import Discovery
from hopscope.facts import Role

QUERY, VALUE = Role("query"), Role("value")


@pytest.fixture
def draft(ablator: Ablator) -> Draft:
    """One path in the last layer of a random model; nothing else does anything."""
    search = Search(ablator)
    mechanisms = {head: Mechanism() for head in search.heads}
    mechanisms[2, 0] = Mechanism(((QUERY, aim("own", VALUE)),))
    return drafted(Conditions(State(mechanisms), search.untouched()), 0.2)


def test_strength_is_the_highest_ratio_in_the_states_that_count(
    ablator: Ablator, draft: Draft
) -> None:
    search = Search(ablator)
    (unit,) = draft.units
    less = draft.states.without(unit, search.sources).ideal
    with_it, without_it = search.losses([draft.states.ideal, less]).mean(-1)
    assert strengths(search, draft)[0] == pytest.approx(without_it / with_it)


class Expecting(Search):
    """A model in which two idle heads add something that the rest was trained with."""

    limits = Limits(0.0, np.zeros(2))  # nothing may be removed

    def losses(self, states: Sequence[State], roughly: bool = False) -> np.ndarray:
        found = []
        for state in states:
            path = bool(state[2, 0].readers) and state[2, 0].of(QUERY) != UNIFORM
            missed = sum(0.3 for head in ((0, 1), (1, 1)) if not state[head].readers)
            found.append([0.1 + missed + 0.4 * (not path)] * 2)
        return np.array(found)


def test_heads_that_help_are_put_back_until_the_path_shows(ablator: Ablator, draft: Draft) -> None:
    search = Expecting(ablator)
    after = settled(search, draft)
    assert after.averaged == {(0, 1), (1, 1)}
    for head in after.averaged:
        assert {its for _, its in after.states.ideal[head].aims} == {BY_POSITION}
    found = dict(zip([unit.head for unit in after.units], strengths(search, after), strict=True))
    assert found == pytest.approx({(0, 1): 4, (1, 1): 4, (2, 0): 5})
    assert after.states.ideal[2, 0] == draft.states.ideal[2, 0]


def test_a_unit_stays_if_the_rest_finds_its_way_with_it_alone(
    ablator: Ablator, draft: Draft
) -> None:
    class Guided(Search):
        """A model whose path finds its place by a row of another head, and needs it for nothing
        else: without it the loss rises a little where attention is computed.
        """

        limits = Limits(0.25, np.full(2, 0.25))

        def losses(self, states: Sequence[State], roughly: bool = False) -> np.ndarray:
            computed = [AS_IS in {its for _, its in state[2, 0].aims} for state in states]
            guided = [bool(state[0, 1].aims) for state in states]
            path = [bool(state[2, 0].aims) for state in states]
            found = [
                0.8 - 0.6 * p + 0.1 * (c and not g)
                for c, g, p in zip(computed, guided, path, strict=True)
            ]
            return np.array([[each] * 2 for each in found])

    ideal = draft.states.ideal.looking_at([((0, 1), VALUE)], BY_POSITION)
    search = Guided(ablator, settings=Discovery(margin=1.0))
    after = settled(search, drafted(Conditions(ideal, draft.states.untouched), 0.2))
    assert {unit.head for unit in after.units} == {(0, 1), (2, 0)}
    assert after.states.own[0, 1].of(VALUE) == AS_IS
