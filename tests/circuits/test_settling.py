"""Settling: what is given up, what is put back, and who can tell others where to look."""

from collections.abc import Sequence

import numpy as np
import pytest

from hopscope.circuits import Bench, Mechanism, aim
from hopscope.circuits.mechanism import BY_POSITION, UNIFORM
from hopscope.circuits.search import Limits, Search, State
from hopscope.circuits.settling import (
    Draft,
    Kept,
    drafted,
    locates,
    settled,
    shared_steps,
    strengths,
)
from hopscope.facts import Path, Role

QUERY, KEY, VALUE = Role("query"), Role("key"), Role("value")


@pytest.fixture
def draft(bench: Bench) -> Draft:
    """One path in the last layer of a random model; nothing else does anything."""
    search = Search(bench)
    state = {head: Mechanism() for head in search.heads}
    state[2, 0] = Mechanism(((QUERY, aim("own", VALUE)),))
    return drafted(state, search.untouched(), search.untouched())


def test_strength_is_the_highest_ratio_in_the_states_that_count(bench: Bench, draft: Draft) -> None:
    search = Search(bench)
    (part,) = draft.parts
    with_it, without_it = search.losses([draft.ideal, draft.without(part, search)[0]]).mean(-1)
    assert strengths(search, draft)[0] == pytest.approx(without_it / with_it)


class Expecting(Search):
    """A model in which two idle heads add something that the rest was trained with."""

    def losses(self, states: Sequence[State], roughly: bool = False) -> np.ndarray:
        found = []
        for state in states:
            path = bool(state[2, 0].readers) and state[2, 0].of(QUERY) != UNIFORM
            missed = sum(0.3 for head in ((0, 1), (1, 1)) if not state[head].readers)
            found.append([0.1 + missed + 0.4 * (not path)] * 2)
        return np.array(found)


def test_heads_that_help_are_put_back_until_the_path_shows(bench: Bench, draft: Draft) -> None:
    search = Expecting(bench)
    never = Limits(0.0, np.zeros(2))  # nothing may be given up
    after = settled(search, draft, never)
    assert after.ground == {(0, 1), (1, 1)}
    for head in after.ground:
        assert {its for _, its in after.ideal[head].aims} == {BY_POSITION}
    found = dict(zip([part.head for part in after.parts], strengths(search, after), strict=True))
    assert found == pytest.approx({(0, 1): 4, (1, 1): 4, (2, 0): 5})
    assert after.ideal[2, 0] == draft.ideal[2, 0]


def test_only_heads_below_a_path_that_reads_or_is_read_there_can_locate() -> None:
    look = Kept((1, 0), (((1, 0), QUERY),), (Path(1, 0, QUERY, VALUE),))
    copy = Kept((0, 0), (((0, 0), VALUE),), (Path(0, 0, VALUE, KEY),))
    stray = Kept((0, 1), (((0, 1), KEY),), ())
    even = Kept((0, 0), (((0, 0), VALUE),), informed=False)
    assert locates(copy, [look, copy])
    assert not locates(look, [look, copy])
    assert not locates(stray, [look, copy])
    assert not locates(even, [look])


def test_rows_are_parted_into_paths_and_the_rest() -> None:
    mechanism = Mechanism(((VALUE, aim("own", KEY)), (QUERY, BY_POSITION), (KEY, UNIFORM)), UNIFORM)
    draft = drafted({(0, 0): mechanism}, {}, {})
    readers = [[str(role) for _, role in part.rows] for part in draft.parts]
    assert list(zip(readers, [part.informed for part in draft.parts], strict=True)) == [
        (["value 0"], True),
        (["query"], True),
        (["key 0"], False),
    ]
    assert [len(part.paths) for part in draft.parts] == [1, 0, 0]


def test_a_step_is_shared_if_more_than_one_head_does_it() -> None:
    same = Mechanism(((QUERY, aim("own", VALUE)),))
    other = Mechanism(((QUERY, aim("own", KEY)),))
    draft = drafted({(1, 0): same, (1, 1): other, (2, 0): same}, {}, {})
    steps = shared_steps(draft)
    assert list(steps) == [(QUERY, VALUE)]
    assert [part.head for part in steps[QUERY, VALUE]] == [(1, 0), (2, 0)]
