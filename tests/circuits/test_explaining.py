"""Explanations: the simplest that is good enough, and what that means."""

import pytest

from hopscope.circuits import Ablator, exam_of, subject_of
from hopscope.circuits.explaining import Slack, explained
from hopscope.circuits.mechanism import AS_IS
from hopscope.circuits.pruning import needed_rows
from hopscope.circuits.search import Search
from hopscope.configs import Discovery
from hopscope.models.planted import Planted


@pytest.mark.parametrize(("base", "enough"), [(0.0, 0.1), (0.4, 0.5), (1.0, 1.2)])
def test_good_enough_is_a_factor_or_a_share_of_a_low_loss(base: float, enough: float) -> None:
    assert Slack(factor=1.2, share=0.1)(1.0, base) == pytest.approx(enough)


def searched(two_hops: Planted, settings: Discovery) -> Search:
    exam = exam_of(two_hops.task, 16)
    return Search(Ablator(subject_of(two_hops.model), exam), settings=settings)


def test_rows_of_a_planted_model_are_explained_by_what_was_planted(two_hops: Planted) -> None:
    search = searched(two_hops, Discovery())
    own = needed_rows(search, search.untouched())
    found = explained(search, own)
    for head, role in own.live:
        (target,) = found[head].of(role).targets
        sources = {path.source for path in two_hops.paths if (path.layer, path.head) == head}
        assert target.where == "own"
        assert target.role in sources
    assert search.limits.keep(search.losses([found]))[0]


def test_what_is_not_needed_does_nothing_and_gets_no_explanation(two_hops: Planted) -> None:
    search = searched(two_hops, Discovery())
    own = needed_rows(search, search.untouched())
    found = explained(search, own)
    assert set(own.live) == set(found.live)


def test_rows_that_nothing_explains_keep_the_models_attention(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.circuits.explaining.hypotheses", lambda *_: [])
    search = searched(two_hops, Discovery())
    own = needed_rows(search, search.untouched())
    found = explained(search, own)
    assert own.live
    assert all(found[head].of(role) == AS_IS for head, role in own.live)
