"""What luck could do, against every way in which outcomes can be dealt."""

from collections.abc import Sequence
from itertools import chain, combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.papers.luck import Outcome, luck


def apart(outcomes: Sequence[Sequence[bool]]) -> float:
    """How much the models of readings disagree."""
    return sum(sum(its) * (len(its) - sum(its)) / len(its) for its in outcomes)


def dealt(outcomes: Sequence[Outcome]) -> float:
    """By going through every choice of the models for which the claim holds, seed by seed."""
    models = [(n, at) for n, its in enumerate(outcomes) for at in range(len(its))]
    choices = []
    for seed in {seed for its in outcomes for seed, _ in its}:
        owners = [(n, at) for n, at in models if outcomes[n][at][0] == seed]
        choices.append(list(combinations(owners, sum(outcomes[n][at][1] for n, at in owners))))
    values = []
    for chosen in product(*choices):
        holding = set(chain(*chosen))
        held = [[(n, at) in holding for at in range(len(its))] for n, its in enumerate(outcomes)]
        values.append(apart(held))
    here = apart([[holds for _, holds in its] for its in outcomes])
    return sum(value <= here + 1e-9 for value in values) / len(values)


READING = st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=3)


@given(st.lists(READING, min_size=1, max_size=4))
def test_luck_is_counted_over_every_way(outcomes: list[Outcome]) -> None:
    assert luck(outcomes) == pytest.approx(dealt(outcomes), abs=1e-12)


def of(*holds: bool) -> Outcome:
    """A reading's models of seeds 0, 1, …"""
    return list(enumerate(holds))


def test_what_each_seed_does_is_dealt_apart() -> None:
    yes, no = of(True, True, True), of(False, False, False)
    for outcomes, expected in (
        ([yes, no], 2 / 8),  # each seed holds under one of two readings
        ([of(True, True, False), of(False, False, True)], 1),
        ([of(True, False)] * 5, 1),  # what the seed decides says nothing of readings
        ([[(0, True)], [(1, False)]], 1),  # models of different seeds are never exchanged
        ([yes] * 8 + [no] * 9, 1 / 24_310**2),  # the ways to choose 8 of 17
    ):
        assert luck(outcomes) == pytest.approx(expected)
