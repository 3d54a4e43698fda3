"""Targets of Musat: which runs each protocol takes, and that smoke is a matter of seconds."""

import pytest

from hopscope.configs import Experiment
from hopscope.papers.claim import Claim
from hopscope.papers.musat.claims import CLAIMS
from hopscope.papers.musat.targets import TARGETS

NAMED = {target.name: target for target in TARGETS}


def trainings(name: str, protocol: str) -> list[Experiment]:
    found = [each for each in NAMED[name].runs(protocol)[1] if isinstance(each, Experiment)]  # type: ignore[arg-type]
    assert found
    return found


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_rests_on_targets_that_there_are(claim: Claim) -> None:
    assert set(claim.targets) <= set(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_smoke_is_small_and_says_what_it_leaves_out(name: str) -> None:
    protocol, recipes = NAMED[name].runs("smoke")
    assert protocol == "smoke"
    assert NAMED[name].remarks["smoke"]
    for recipe in recipes:
        assert isinstance(recipe, Experiment)
        assert recipe.steps <= 400
        assert recipe.model.d_model <= 32


@pytest.mark.parametrize("kind", ["ic", "nonic"])
def test_figure_4_has_eight_depths_of_eight_models_and_is_shorter_when_reduced(kind: str) -> None:
    full, short = (trainings(f"musat/fig4-{kind}", each) for each in ("full", "reduced"))
    assert [each.model.layers for each in full] == list(range(1, 9))
    assert all(len(each.seeds) == 8 for each in full)
    assert all(each.seeds == (0,) for each in short)
    assert all(a.steps > b.steps for a, b in zip(full, short, strict=True))


def test_figure_7_reads_the_paper_in_several_ways() -> None:
    full = trainings("musat/fig7", "full")
    readings = {(each.training.examples, each.model.init, each.seeds) for each in full}
    assert len(readings) == len(full) == 5
    assert {examples for examples, _, _ in readings} == {2_048, 262_144}
    assert len(trainings("musat/fig7", "reduced")) == 3
