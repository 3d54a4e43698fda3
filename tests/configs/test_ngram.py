"""The n-gram experiment's config: plans, defaults, and what cannot be."""

import math

import pytest

from hopscope.configs import Descent, NgramExperiment, NgramProcess


def test_epochs_that_are_unset_are_the_papers_added_up() -> None:
    assert Descent().plan() == [("C", 2_000), ("W", 50_000), ("a", 5_000)]
    assert Descent(stages="CW,a").plan() == [("CW", 52_000), ("a", 5_000)]
    assert Descent(stages="CWa", epochs=(7,)).plan() == [("CWa", 7)]


def test_parents_are_sorted_and_the_largest_is_the_memory() -> None:
    process = NgramProcess(parents=(3, 1))
    assert (process.parents, process.memory) == ((1, 3), 3)


def test_what_a_run_is_called_and_counted_in() -> None:
    experiment = NgramExperiment(descent={"stages": "CW,a", "epochs": (2, 3)})
    assert experiment.title() == "ngram-3-pa12-CW-a"
    assert (experiment.steps, experiment.unit) == (5, "epoch")
    assert experiment.chance == pytest.approx(math.log(3))
