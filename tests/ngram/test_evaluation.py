"""What a trained model has become, and the predictors beside it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.configs import NgramExperiment, NgramProcess
from hopscope.errors import ConfigError
from hopscope.ngram import evaluation, information, train
from hopscope.ngram.growth import growth
from hopscope.ngram.process import Chains, sample_chains
from hopscope.ngram.trainer import chains_of


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
    assert (moments[0].epoch, moments[-1].epoch) == (0, 300)
    assert moments[0].distance > 0.2
    assert moments[-1].distance < 0.02
    chains = chains_of(chosen, 0, "validation")
    answers = evaluation.model_answers(chosen, run.state(0), chains)
    losses = evaluation.compare(chosen, answers, chains).expected
    assert losses.truth < losses.bayes < losses.model < losses.gih
    grown = growth(run.course(0), 2_100)
    assert grown.straightness > 0.99
    for process, other in evaluation.transfer(run, 0, lengths=(20, 200), alphas=(1.0,), chains=300):
        assert other.distance < 0.05, process
    with pytest.raises(ConfigError, match="lengths has 3; .* make it at least 4"):
        evaluation.transfer(run, 0, lengths=(3,), alphas=())


def test_default_lengths_are_longer_than_the_window(tmp_path: Path) -> None:
    descent = {"epochs": (1, 1, 1), "chains": 5, "validation_chains": 5}
    run = train(NgramExperiment(model={"window": 20}, descent=descent), tmp_path)
    lengths = [process.length for process, _ in evaluation.transfer(run, 0, alphas=(), chains=5)]
    assert lengths == [50, 100, 200, 400]


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
        descent={"stages": "C", "epochs": (1_000,), "chains": 1_500},
    )
    run = train(chosen, tmp_path)
    assert evaluation.choice(chosen.model, run.course(0).at(-1)).lags in expected
    seen = information.through_heads(chosen.process, chosen.model, 300)
    assert information.winner(seen) in expected
    alone = information.exact(chosen.process, chosen.model, 1_000)
    assert information.winner(alone) == parents


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1_000),
    alphabet=st.integers(2, 4),
    lags=st.sets(st.integers(1, 4), min_size=1, max_size=3),
)
def test_the_induction_head_averages_what_followed_its_matches(
    seed: int, alphabet: int, lags: set[int]
) -> None:
    process = NgramProcess(alphabet=alphabet, length=12, start="uniform")
    chains = sample_chains(process, 15, seed)
    answers, matched = evaluation.gih(chains, 4, tuple(lags))
    for number, tokens in enumerate(chains.tokens):
        places = range(4, 12)
        same = [p for p in places if all(tokens[p - lag] == tokens[12 - lag] for lag in lags)]
        tally = np.bincount(tokens[same or list(places)], minlength=alphabet)
        np.testing.assert_allclose(answers[number], tally / tally.sum(), atol=1e-12)
        assert matched[number] == bool(same)


def test_bayes_counts_what_followed_the_parents_and_adds_the_prior() -> None:
    process = NgramProcess(alphabet=2, parents=(1,), alpha=0.5, length=6)
    tokens = np.array([[0, 1, 0, 1, 1, 0, 1]], np.int8)  # after 0: 1, 1, and ? is asked
    chains = Chains(process, tokens, np.array([[[0.5, 0.5], [0.1, 0.9]]]))
    answers = evaluation.bayes(chains)
    np.testing.assert_allclose(answers, [[0.5 / 3, 2.5 / 3]])
    assert chains.truth().tolist() == [[0.5, 0.5]]
    expected = -(np.log(0.5 / 3) + np.log(2.5 / 3)) / 2
    assert evaluation.expected_loss(answers, chains, 0.0) == pytest.approx(expected)
    assert evaluation.distance(answers, chains.truth()) == pytest.approx(1 / 3)
