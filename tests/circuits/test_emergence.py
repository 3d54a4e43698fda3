"""Stories told by hand: their order, their epochs, and what is kept of them."""

import json
from dataclasses import replace

import numpy as np
import pytest

import hopscope
from hopscope.circuits.emergence import Emergence
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.theory import Path

PATHS = (Path(0, 1, Role("value", 0), Role("key", 0)), Path(1, 0, Role("query"), Role("key")))
STORY = Emergence(
    PATHS, (0, 10, 20), np.array([[0.1, 0.3, 0.7], [0.2, 0.3, 0.4]]), np.full((3, 1), 0.7), 0.75,
    4.0, (12,),
)  # fmt: skip


def test_paths_come_in_order_and_those_that_never_did_last() -> None:
    late = replace(STORY, attention=STORY.attention[::-1])
    assert STORY.order == [(PATHS[0], 15.0), (PATHS[1], None)]
    assert late.order == [(PATHS[1], 15.0), (PATHS[0], None)]
    assert STORY.emerged(PATHS[1]) is None


def test_epochs_are_counted_where_they_are_known() -> None:
    assert (STORY.epoch(15.0), STORY.epoch(None)) == (3.75, None)
    assert replace(STORY, steps_per_epoch=None).epoch(15.0) is None


def test_a_story_is_read_as_it_was_written() -> None:
    for story in (STORY, replace(STORY, learned_at=(None,)), replace(STORY, learned_at=None)):
        again = Emergence.from_dict(json.loads(json.dumps(story.to_dict())))
        assert again.to_dict() == story.to_dict()
        assert (again.order, again.learned_at) == (story.order, story.learned_at)


def test_a_story_of_an_earlier_version_says_nothing_of_hops() -> None:
    kept = STORY.to_dict()
    del kept["learned_at"]
    assert Emergence.from_dict(kept).learned_at is None


def test_a_hop_or_path_that_is_not_there_is_named() -> None:
    story = hopscope.load("gallery/demo").emergence(examples=2)
    with pytest.raises(CircuitError, match="hop is 0; this task asks 1, 2"):
        story.learned(0)
    with pytest.raises(CircuitError, match="is no path of this circuit"):
        story.emerged(Path(0, 0, Role("value", 1), Role("query")))
