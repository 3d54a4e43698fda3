"""Tasks over vectors: what fits, and what they answer about themselves."""

from collections.abc import Callable

import pytest

from hopscope.configs import ConditionalRetrieval, Induction, Retrieval
from hopscope.errors import ConfigError, FactError


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Retrieval(dim=3), "dim is 3; .* make it even"),
        (lambda: Retrieval(symbols="one-hot", dim=4), "16 distinct one-hot symbols need dim >= 16"),
        (lambda: Retrieval(hops=128, curriculum=False), "hops: .* less than or equal to 127"),
        (lambda: ConditionalRetrieval(facts=["a->x"] * 128), "at most 127 items"),
        (lambda: Retrieval().ordered("sideways"), "order: .* got 'sideways'"),  # type: ignore[arg-type]
        (lambda: ConditionalRetrieval(decoys=4), "at most chains - 1 = 3"),
        (lambda: ConditionalRetrieval(decoys=1, symbols="one-hot", dim=18), "need dim >= 20"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


def test_cyclic_facts_are_refused() -> None:
    with pytest.raises(FactError, match="need each other"):
        ConditionalRetrieval(facts=("a->b", "b->a"))


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
