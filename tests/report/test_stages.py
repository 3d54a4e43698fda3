"""Epochs on a scale that gives every stage the same room."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.report.look import drawn
from hopscope.report.stages import Stages, StageScale, draw_stages

PLAN = [("C", 20), ("W", 500), ("a", 50)]
SCALE = StageScale(PLAN)


def test_every_stage_is_one_wide() -> None:
    assert SCALE.place(np.array([0, 20, 520, 570])) == pytest.approx([0, 1, 2, 3])


@given(st.integers(0, 570))
def test_a_place_is_that_of_one_epoch(epoch: int) -> None:
    assert SCALE.epoch(SCALE.place(epoch)) == pytest.approx(epoch, abs=1e-6)


def test_what_is_drawn_has_every_end_of_a_stage_and_no_crowd() -> None:
    shown = SCALE.shown(np.arange(571))
    assert {0, 20, 520, 570} <= set(shown)
    assert len(shown) < 200


def test_curves_are_means_over_seeds() -> None:
    epochs = np.array([0, 20, 520, 570])
    two = np.array([[0.0, 0.2, 0.4, 0.6], [0.0, 0.4, 0.8, 1.0]])
    one = {"head 1 to lag 1": two[:1]}
    found = Stages(PLAN, epochs, {"{1}": two}, one, two, {"train": two})
    axes = drawn(draw_stages)(found, "a title").axes
    assert list(axes[0].lines[0].get_ydata()) == pytest.approx([0, 0.3, 0.6, 0.8])
    assert list(axes[1].lines[0].get_ydata()) == pytest.approx([0, 0.2, 0.4, 0.6])
    assert [len(one.collections) for one in axes] == [1, 0, 1, 1]  # one seed has no band
