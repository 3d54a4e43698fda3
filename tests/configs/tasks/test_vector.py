"""Tasks over vectors: what fits, and what they answer about themselves."""

import pytest

from hopscope.configs import ConditionalRetrieval, Induction, Retrieval


def test_the_guessing_level_is_that_of_the_mean_of_the_candidates() -> None:
    assert Retrieval(chains=4).guess() == pytest.approx(0.75)
    assert Retrieval(chains=2, dim=8, symbols="sphere").guess() == pytest.approx(0.5 / 8)


def test_without_curriculum_the_last_hop_is_asked_alone() -> None:
    every, last = Retrieval(hops=3), Retrieval(hops=3, curriculum=False)
    assert (every.asked_hops(), last.asked_hops()) == ((1, 2, 3), (3,))
    assert (every.asks_every_hop(), last.asks_every_hop()) == (True, False)
    assert every.interface().outputs == 3 * last.interface().outputs == 3 * every.dim
    assert ConditionalRetrieval().asked_hops() == (1, 2, 3)


def test_induction_is_retrieval_over_one_hop() -> None:
    one, other = Induction(), Retrieval(hops=1)
    assert one.graph() == other.graph()
    assert (one.roles(), one.interface(), one.guess()) == (
        other.roles(), other.interface(), other.guess(),
    )  # fmt: skip
    assert (one.chosen_hops(), other.chosen_hops()) == (None, 1)


def test_rotary_rates_fall_from_one() -> None:
    assert Retrieval(dim=4, base=10_000).rates() == pytest.approx([1, 0.01])
