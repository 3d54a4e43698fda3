"""What a trained model is: the lags it chose, how near to an induction head, what it transfers."""

from pathlib import Path

import pytest

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError
from hopscope.ngram import evaluation, information, train
from hopscope.ngram.growth import growth
from hopscope.ngram.learner import drawn


def test_the_paper_in_short(tmp_path: Path) -> None:
    """Stage I takes the parents, II sharpens their heads, III makes an induction head."""
    chosen = NgramExperiment(descent={"epochs": (100, 2_000, 300), "chains": 3_000})
    run = train(chosen, tmp_path)
    picked = evaluation.choice(chosen.model, run.course(0).at(-1))
    assert (picked.heads, picked.lags) == ((0, 1), (1, 2))
    assert picked.share > 0.999
    assert min(picked.weights) > 0.93
    before = evaluation.choice(chosen.model, run.course(0).at(0))
    assert max(before.weights) < 0.91
    moments = evaluation.approach(run, 0)
    assert moments[0].distance > 0.2
    assert moments[-1].distance < 0.02
    chains = drawn(chosen, 0, "validation")
    found = evaluation.compare(chosen, evaluation.said(chosen, run.state(0), chains), chains)
    assert found.expected.bayes < found.expected.model < found.expected.gih
    grown = growth(run.course(0), 2_100)
    assert grown.straightness > 0.99
    for process, other in evaluation.transfer(run, 0, lengths=(20, 200), alphas=(1.0,), chains=300):
        assert other.distance < 0.05, process
    with pytest.raises(ConfigError, match="make it at least 4"):
        evaluation.transfer(run, 0, lengths=(3,), alphas=())


CHOICES = [
    # parents, degree, first weight of a head at its lag, lags chosen
    ((2,), 2, 3.0, {(2,)}),
    ((1, 3), 2, 3.0, {(1, 3)}),
    # Three blurred copies agree less than two: the triple loses, unless heads copy sharply.
    ((1, 2, 3), 3, 3.0, {(1, 2), (1, 3), (2, 3)}),
    ((1, 2, 3), 3, 8.0, {(1, 2, 3)}),
]


@pytest.mark.parametrize(("parents", "degree", "own", "expected"), CHOICES)
def test_stage_one_chooses_what_is_seen_through_the_heads(
    parents: tuple[int, ...],
    degree: int,
    own: float,
    expected: set[tuple[int, ...]],
    tmp_path: Path,
) -> None:
    chosen = NgramExperiment(
        process={"parents": parents, "start": "uniform"},
        model={"degree": degree, "own": own},
        descent={"stages": "C", "epochs": (1_000,), "chains": 3_000},
    )
    run = train(chosen, tmp_path)
    assert evaluation.choice(chosen.model, run.course(0).at(-1)).lags in expected
    seen = information.through_heads(chosen.process, chosen.model, 300)
    assert information.winner(seen) in expected
    alone = information.exact(chosen.process, chosen.model, 2_000)
    assert information.winner(alone) == parents
