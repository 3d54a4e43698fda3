"""Drafts: rows in units, who can tell others where to look, and what removing a unit does."""

from hopscope.circuits import Mechanism, aim
from hopscope.circuits.ablation import Head
from hopscope.circuits.draft import Conditions, Draft, Unit, drafted
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, PREVIOUS, UNIFORM
from hopscope.circuits.state import State
from hopscope.facts import Role
from hopscope.theory import Path

QUERY, KEY, VALUE = Role("query"), Role("key"), Role("value")
NONE = State()


def draft_of(ideal: dict[Head, Mechanism], share: float = 0.2) -> Draft:
    return drafted(Conditions(State(ideal), NONE), share)


def test_only_heads_below_a_path_that_reads_or_is_read_there_can_locate() -> None:
    look = Unit((1, 0), (((1, 0), QUERY),), (Path(1, 0, QUERY, VALUE),))
    copy = Unit((0, 0), (((0, 0), VALUE),), (Path(0, 0, VALUE, KEY),))
    stray = Unit((0, 1), (((0, 1), KEY),), ())
    draft = Draft(Conditions(NONE, NONE), (look, copy))
    assert draft.locates(copy)
    assert not draft.locates(look)
    assert not draft.locates(stray)


def test_rows_are_parted_into_paths_and_what_else_they_look_at() -> None:
    first = Role("value", 1)
    aims = ((VALUE, aim("own", KEY)), (QUERY, BY_POSITION), (KEY, ITSELF), (first, BY_POSITION))
    draft = draft_of({(0, 0): Mechanism(aims, UNIFORM)})
    readers = [[str(role) for _, role in unit.rows] for unit in draft.units]
    assert readers == [["value 0"], ["key 0"], ["query", "value 1"]]
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
    model = State({(0, 0): Mechanism(((QUERY, AS_IS),))})
    ideal = State({(0, 0): Mechanism(((QUERY, aim("own", VALUE)), (KEY, PREVIOUS)))})
    draft = drafted(Conditions(ideal, model), 0.2)
    unit = next(unit for unit in draft.units if unit.rows == (row,))
    less = draft.states.without(unit, {row: VALUE})
    assert less.ideal[0, 0] == Mechanism(((KEY, PREVIOUS),))
    assert less.untouched[0, 0].of(QUERY) == aim("elsewhere", VALUE)
    assert draft.removed(unit).states == Conditions(less.ideal, model)


def test_a_circuit_on_its_own_is_its_rows_and_nothing_else() -> None:
    ideal = State({
        (0, 0): Mechanism(((QUERY, aim("own", VALUE)), (KEY, UNIFORM)), ITSELF),
        (0, 1): Mechanism(rest=UNIFORM),
    })  # fmt: skip
    own = Conditions(ideal, NONE).own
    assert own[0, 0] == Mechanism(((QUERY, AS_IS), (KEY, AS_IS)), ITSELF)
    assert own[0, 1] == Mechanism(rest=UNIFORM)
