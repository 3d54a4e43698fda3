"""The n-gram experiment's config: plans, defaults, and what cannot be."""

import math
from collections.abc import Callable

import pytest

from hopscope.configs import Descent, InductionModel, MarkovExperiment, MarkovProcess
from hopscope.errors import ConfigError


def test_epochs_that_are_unset_are_the_papers_added_up() -> None:
    assert Descent().plan() == [("C", 2_000), ("W", 50_000), ("a", 5_000)]
    assert Descent(stages="CW,a").plan() == [("CW", 52_000), ("a", 5_000)]
    assert Descent(stages="CWa", epochs=(7,)).plan() == [("CWa", 7)]


def test_parents_are_sorted_and_the_largest_is_the_memory() -> None:
    process = MarkovProcess(parents=(3, 1))
    assert (process.parents, process.memory) == ((1, 3), 3)


def test_what_a_run_is_called_and_counted_in() -> None:
    experiment = MarkovExperiment(descent={"stages": "CW,a", "epochs": (2, 3)})
    assert experiment.title() == "markov-3-pa12-CW-a"
    assert (experiment.steps, experiment.unit) == (5, "epoch")
    assert experiment.guess == pytest.approx(math.log(3))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: MarkovProcess(parents=(1, 1)), r"parents are \(1, 1\): each lag may appear once"),
        (lambda: MarkovProcess(parents=()), "parents"),
        (lambda: InductionModel(degree=4), "degree is 4, but there are 3 heads"),
        (lambda: InductionModel(c=1e-120), "coefficients are squared, so take at least 1e-100"),
        (lambda: Descent(stages="C,,a"), "stages is 'C,,a'; expected the letters C, W and a"),
        (lambda: Descent(stages="CC"), "stage 'CC' names a letter twice"),
        (lambda: Descent(epochs=(1, 2)), "epochs has 2 entries, but stages 'C,W,a' are 3"),
        (lambda: Descent(chains=5, batch=6), "batch is 6, but there are 5 chains"),
        (
            lambda: MarkovExperiment(process={"parents": (4,)}),
            "window is 3, but the largest parent is at lag 4",
        ),
        (lambda: MarkovExperiment(process={"length": 3}), "length is 3; .*make it at least 4"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        make()
    assert "\n" not in str(caught.value)
