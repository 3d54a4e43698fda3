"""Drafts: rows in units, who can tell others where to look, and what removing a unit does."""

from hopscope.circuits import Mechanism, aim
from hopscope.circuits.ablation import Head
from hopscope.circuits.draft import Conditions, Draft, Unit, drafted
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, UNIFORM
from hopscope.circuits.state import State
from hopscope.facts import Role
from hopscope.theory import Path

QUERY, KEY, VALUE = Role("query"), Role("key"), Role("value")
NONE = State()


def draft_of(ideal: dict[Head, Mechanism], share: float = 0.2) -> Draft:
    return drafted(Conditions(State(ideal), NONE, NONE), share)


def test_only_heads_below_a_path_that_reads_or_is_read_there_can_locate() -> None:
    look = Unit((1, 0), (((1, 0), QUERY),), (Path(1, 0, QUERY, VALUE),))
    copy = Unit((0, 0), (((0, 0), VALUE),), (Path(0, 0, VALUE, KEY),))
    stray = Unit((0, 1), (((0, 1), KEY),), ())
    even = Unit((0, 0), (((0, 0), VALUE),), informed=False)
    draft = Draft(Conditions(NONE, NONE, NONE), (look, copy))
    assert draft.locates(copy)
    assert not draft.locates(look)
    assert not draft.locates(stray)
    assert not draft.locates(even)


def test_rows_are_parted_into_paths_and_the_rest() -> None:
    mechanism = Mechanism(((VALUE, aim("own", KEY)), (QUERY, BY_POSITION), (KEY, UNIFORM)), UNIFORM)
    draft = draft_of({(0, 0): mechanism})
    readers = [[str(role) for _, role in unit.rows] for unit in draft.units]
    assert list(zip(readers, [unit.informed for unit in draft.units], strict=True)) == [
        (["value 0"], True),
        (["query"], True),
        (["key 0"], False),
    ]
    assert [len(unit.paths) for unit in draft.units] == [1, 0, 0]


def test_an_aim_with_too_little_weight_is_no_path() -> None:
    look = {(0, 0): Mechanism(((VALUE, aim("own", KEY)),))}
    assert draft_of(look, 1.0).units[0].paths
    assert not draft_of(look, 1.1).units[0].paths


def test_a_step_is_shared_if_more_than_one_head_does_it() -> None:
    same = Mechanism(((QUERY, aim("own", VALUE)),))
    other = Mechanism(((QUERY, aim("own", KEY)),))
    steps = draft_of({(1, 0): same, (1, 1): other, (2, 0): same}).shared_steps
    assert list(steps) == [(QUERY, VALUE)]
    assert [unit.head for unit in steps[QUERY, VALUE]] == [(1, 0), (2, 0)]


def test_a_unit_is_removed_from_each_state_in_its_way() -> None:
    row = ((0, 0), QUERY)
    own = State({(0, 0): Mechanism(((QUERY, AS_IS),))})
    states = Conditions(State({(0, 0): Mechanism(((QUERY, aim("own", VALUE)),))}), own, own)
    (unit,) = drafted(states, 0.2).units
    less = states.without(unit, {row: VALUE})
    assert less.ideal[0, 0] == Mechanism()
    assert less.own[0, 0].of(QUERY) == less.untouched[0, 0].of(QUERY) == aim("elsewhere", VALUE)
    # It tells nobody where to look, so the rows that are left to themselves keep it.
    assert drafted(states, 0.2).removed(unit, {row: VALUE}).states.own == own
