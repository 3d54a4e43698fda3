"""When losses fell, paths emerged and trainings were calm, held against slow loops and by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.milestones import (
    WINDOW,
    best_late_checkpoint,
    crossing,
    first_below,
    learned,
    learned_below,
)


def slowly(steps: list[int], losses: list[list[float]]) -> list[int | None]:
    """The first step whose last WINDOW losses have a mean below one half, hop by hop."""
    found: list[int | None] = []
    for hop in range(len(losses[0])):
        found.append(None)
        for last in range(WINDOW - 1, len(losses)):
            window = [losses[number][hop] for number in range(last - WINDOW + 1, last + 1)]
            if sum(window) / WINDOW < 0.5:
                found[-1] = steps[last]
                break
    return found


sixteenths = st.integers(0, 16).map(lambda number: number / 16)
"""Losses whose means are exact, so that a mean of one half is one."""


@given(
    st.integers(1, 3).flatmap(
        lambda hops: st.lists(
            st.lists(sixteenths, min_size=hops, max_size=hops), min_size=1, max_size=3 * WINDOW
        )
    )
)
def test_first_below_as_by_a_slow_loop(losses: list[list[float]]) -> None:
    steps = [10 * number + 1 for number in range(len(losses))]
    found = first_below(np.array(steps, np.int32), np.array(losses, np.float32), 0.5)
    assert found == slowly(steps, losses)
    json.dumps(found)


def test_a_huge_loss_is_forgotten_with_its_window() -> None:
    """No running sum, which would never lose it; and a mean of one half is not below one half."""
    losses = [1e20] * 5 + [1.0] * 20 + [0.0] * 5 + [0.0]
    steps = np.arange(1, len(losses) + 1)
    assert first_below(steps, np.array(losses, np.float32)[:, None], 0.5) == [31]


def test_what_is_learned_by_heart_is_not_learned() -> None:
    validation = np.array([[0.7, 0.8], [0.49, 0.9], [0.6, 1.4]], np.float32)
    steps, fallen = np.arange(1, 31), np.zeros((30, 2), np.float32)
    for at, found in (((0, 5, 10), WINDOW), ((0, 20, 30), WINDOW), ((15, 20, 25), 16)):
        assert learned(steps, fallen, np.array(at), validation, 0.5) == [found, None]
    assert learned(steps, fallen, np.array([0]), validation[:1], 0.5) == [None, None]
    assert learned(steps, fallen + 1, np.array([0, 5, 10]), validation, 0.5) == [None, None]


def test_neither_memorised_examples_nor_a_dip_of_a_plateau_are_learned() -> None:
    steps, checked = np.arange(1, 101), np.arange(0, 101, 10)
    train = np.full((100, 2), 0.6, np.float32)
    train[20:, 0] = 0.1  # memorised from step 21 on
    train[20:30, 1], train[71:, 1] = 0.4, 0.1  # a dip of a plateau; learned from step 72 on
    validation = np.where(checked < 75, 0.7, 0.2)[:, None].repeat(2, axis=1)
    assert first_below(steps, train, 0.5) == [23, 26]
    assert learned(steps, train, checked, validation, 0.5) == [71, 74]


def test_a_hop_of_four_chains_is_learned_at_one_half() -> None:
    assert learned_below((0.75, 1.5)).tolist() == [0.5, 1.0]


def test_a_crossing_lies_between_two_checkpoints() -> None:
    assert crossing([0, 10, 20], np.array([0.1, 0.3, 0.7])) == pytest.approx(15)
    assert crossing([0, 10], np.array([0.9, 0.2])) == 0
    assert crossing([0, 10], np.array([0.1, 0.2])) is None


STEPS = np.array([0, 50, 89, 90, 95, 100])
LOSSES = np.array([0.9, 0.1, 0.1, 0.3, 0.2, 0.4])


def test_the_best_late_checkpoint() -> None:
    for checkpoints, step in (
        ([0, 50, 89, 90, 95, 100], 95),  # what came before the last tenth does not count
        ([0, 50, 90, 100], 90),
        ([0, 50, 93, 100], 100),  # of 93 no loss is known
        ([0, 50], 50),
        ([7], 7),  # of the only one no loss is known
    ):
        assert best_late_checkpoint(STEPS, LOSSES, checkpoints) == step, checkpoints
