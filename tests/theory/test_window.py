import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.errors import ConfigError
from hopscope.theory import known_hops, reach

HOPS = 6


def followed(letters: list[int], at: int, seen: set[int]) -> list[int]:
    """Where hops lead, while all that they pass is seen."""
    places = [at]
    while len(places) <= HOPS:
        here = places[-1]
        earlier = [n for n in range(here) if letters[n] == letters[here]]
        if not earlier or earlier[-1] not in seen or earlier[-1] + 1 not in seen:
            break
        places.append(earlier[-1] + 1)
    return places


def by_sets(letters: list[int], layers: int, window: int) -> list[int]:
    """The same from which letters each position has seen, layer by layer."""
    every = set(range(len(letters)))
    seen = [set(range(max(0, at - window), at + 1)) for at in range(len(letters))]
    for _ in range(layers - 1):
        before = [set(its) for its in seen]
        for at, its in enumerate(seen):
            known = len(followed(letters, at, before[at]))
            for place in followed(letters, at, every)[1 : known + 1]:
                its.update(before[place])
    return [len(followed(letters, at, its)) - 1 for at, its in enumerate(seen)]


@given(st.lists(st.integers(0, 3), min_size=2, max_size=24), st.integers(1, 4), st.integers(1, 6))
def test_counting_agrees_with_sets_of_letters_that_were_seen(
    letters: list[int], layers: int, window: int
) -> None:
    found = known_hops(np.array([letters]), layers, window, HOPS)[0]
    assert found.tolist() == by_sets(letters, layers, window)


def test_one_letter_back_is_the_exact_law() -> None:
    """Where no letter follows itself."""
    steps = np.random.default_rng(0).integers(1, 4, (50, 100))
    letters = steps.cumsum(1) % 4
    for layers in (1, 2, 3, 4):
        found = known_hops(letters, layers, 1, 10)
        led = known_hops(letters, 1, 100, 10)  # where all can be seen
        assert (found == np.minimum(led, reach(layers))).all(), layers


def test_there_is_a_layer_and_a_window() -> None:
    for layers, window in ((0, 1), (1, 0)):
        with pytest.raises(ConfigError, match="expected at least 1 of each"):
            known_hops(np.array([[0, 1]]), layers, window, 1)


@pytest.mark.parametrize("letters", [np.zeros((1, 0), int), np.array([[-1, 2]])])
def test_what_is_no_set_of_sequences_is_refused(letters: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="expected .example, position. of whole numbers from 0"):
        known_hops(letters, 1, 1, 1)
