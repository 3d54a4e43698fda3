"""Why a grows as it does: counts against positions, descent against a slow one, and the slopes."""

from pathlib import Path

import numpy as np
import pytest
import torch

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError
from hopscope.ngram import NgramRun, sample_chains, train
from hopscope.ngram.growth import (
    MatchCounts,
    fitted,
    gap,
    grown,
    growth,
    growth_explained,
    match_counts,
)
from hopscope.ngram.model import InductionTransformer
from hopscope.ngram.parameters import initial
from hopscope.ngram.trainer import chains_of

SHORT = {"epochs": (100, 100, 600), "chains": 2_000, "validation_chains": 100}
LOSS = {"rate": 1.0, "epsilon": 1e-6}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> NgramRun:
    """Three short stages; heads begin sharp, since there is no time to sharpen them."""
    root: Path = tmp_path_factory.mktemp("growth")
    return train(NgramExperiment(model={"own": 8.0}, descent=SHORT), root)


def test_matches_are_counted_as_one_would_by_hand() -> None:
    experiment = NgramExperiment(process={"length": 30, "parents": (1, 3)})
    chains = sample_chains(experiment.process, 20, 0)
    found = match_counts(experiment, chains)
    for number, tokens in enumerate(chains.tokens.tolist()):
        places = range(experiment.model.window, len(tokens) - 1)
        own = [tokens[len(tokens) - 1 - lag] for lag in (1, 3)]
        same = [[tokens[place - lag] for lag in (1, 3)] == own for place in places]
        hit = [tokens[place] == chains.targets[number] for place in places]
        assert found.matches[number] == sum(same)
        assert found.others[number] == len(same) - sum(same)
        assert found.hits[number] == sum(s and h for s, h in zip(same, hit, strict=True))
        assert found.other_hits[number] == sum(h and not s for s, h in zip(same, hit, strict=True))


def test_the_gap_is_from_the_least_similar_match_to_any_other_position() -> None:
    experiment = NgramExperiment(process={"length": 20, "parents": (1,)})
    chains = sample_chains(experiment.process, 20, 0)
    module, matches, others = InductionTransformer(experiment.model, 3), [], []
    tokens = torch.from_numpy(chains.tokens[:, :-1].astype(np.int64))
    query = module.copies(*module.seen(tokens, 20))
    for place in range(3, 20):
        similar = module.similarity(module.copies(*module.seen(tokens, place)), query)
        same = tokens[:, place - 1] == tokens[:, 19]
        matches += similar[same].tolist()
        others += similar[~same].tolist()
    found = gap(experiment, initial(experiment.model), chains)
    assert found == pytest.approx(min(matches) - max(others))


def test_the_descent_is_that_of_attention_over_positions() -> None:
    """One that differs the loss by a small step in a, chain by chain, position by position."""
    found = MatchCounts(*np.array([[3.0, 1, 1], [5.0, 9, 9], [2.0, 1, 1], [1.0, 0, 0]]))

    def loss(a: float) -> float:
        total = 0.0
        for m, n, h, o in zip(
            found.matches, found.others, found.hits, found.other_hits, strict=True
        ):
            scores = np.array([a] * int(m) + [a * 0.1] * int(n))
            right = np.array([1] * int(h) + [0] * int(m - h) + [1] * int(o) + [0] * int(n - o))
            attention = np.exp(scores) / np.exp(scores).sum()
            total -= np.log(attention @ right + LOSS["epsilon"]) / 3
        return total

    a, slow = 0.5, [0.5]
    for _ in range(20):
        a -= (loss(a + 1e-5) - loss(a - 1e-5)) / 2e-5
        slow.append(a)
    np.testing.assert_allclose(grown(found, 0.9, 0.5, 20, **LOSS), slow, atol=1e-7)


def test_chains_that_are_alike_give_one_over_the_gap() -> None:
    alike = MatchCounts(*np.array([[60.0, 60], [30.0, 30], [50.0, 50], [8.0, 8]]))
    slope = fitted(np.arange(4_001), grown(alike, 0.8, 0.01, 4_000, **LOSS)).slope
    assert slope == pytest.approx(1 / 0.8, rel=0.05)
    unlike = MatchCounts(*np.array([[89.0, 1], [1.0, 89], [75.0, 1], [1.0, 20]]))
    slope = fitted(np.arange(4_001), grown(unlike, 0.8, 0.01, 4_000, **LOSS)).slope
    assert slope > 1.2 / 0.8
    assert unlike.even().matches.tolist() == [45.0, 45.0]
    assert unlike.even().hits.tolist() == pytest.approx([45 * 75 / 89, 45.0])


def test_the_counts_alone_grow_as_the_training_did(run: NgramRun) -> None:
    found = growth_explained(run, 0)
    assert set(found.courses) == {"trained", "counts", "found", "even", "found and even"}
    assert {len(course) for course in found.courses.values()} == {len(found.epochs)}
    assert found.slope("trained") == growth(run.course(0), 200).slope
    np.testing.assert_allclose(found.courses["counts"], found.courses["trained"], atol=0.15)
    last = run.course(0).at(-1)
    one = 1 / gap(run.recipe, last, chains_of(run.recipe, 0, "validation"))
    assert found.slope("counts") / found.slope("trained") == pytest.approx(1, abs=0.05)
    assert found.slope("trained") > 1.15 * one
    assert found.slope("found and even") == pytest.approx(one, rel=0.1)


def test_what_has_no_stage_of_its_own_is_not_explained(tmp_path: Path) -> None:
    short = {"stages": "CWa", "epochs": (5,), "chains": 50, "validation_chains": 10}
    run = train(NgramExperiment(descent=short), tmp_path)
    with pytest.raises(ConfigError, match="got CWa, log, copies"):
        growth_explained(run, 0)


def test_two_records_are_no_line() -> None:
    epochs, line = np.arange(1, 9), np.log(np.arange(1.0, 9.0))
    assert fitted(epochs, line).straightness == pytest.approx(1)
    for a in (line[[0, 2, 3, 7]], np.zeros(4)):
        with pytest.raises(ConfigError, match="of its way from 0 to .*, and a line is fitted to 3"):
            fitted(epochs[[0, 2, 3, 7]], a)
