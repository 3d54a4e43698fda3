import numpy as np
import pytest

from hopscope.errors import ConfigError
from hopscope.facts import chain_of_facts
from hopscope.theory import depths, flow, reach, simulated_depth


def test_intervals_say_what_sets_say() -> None:
    for hops in (*range(1, 41), 64):
        for causal in (True, False):
            by_sets = flow(chain_of_facts(hops), causal=causal).minimum[f"x{hops}"]
            assert simulated_depth(hops, causal) == by_sets, (hops, causal)


def test_closed_forms_are_what_the_intervals_say() -> None:
    for hops in (*range(1, 513), 10_000):
        exact = depths(hops)
        assert simulated_depth(hops, causal=True) == exact.causal, hops
        assert simulated_depth(hops, causal=False) == exact.bidirectional, hops
        assert exact.theorem_1 <= exact.bidirectional <= exact.causal, hops
    for layers in range(2, 10):  # reach is the inverse
        assert depths(reach(layers)).causal == layers
        assert depths(reach(layers) + 1).causal == layers + 1
        assert depths(reach(layers, causal=False)).bidirectional == layers
        assert depths(reach(layers, causal=False) + 1).bidirectional == layers + 1


def test_numbers_of_numpy_do_not_overflow() -> None:
    for kind in (np.int8, np.int64):
        assert depths(kind(100)) == depths(100)
        assert simulated_depth(kind(100)) == simulated_depth(100)
        for causal in (True, False):
            assert reach(kind(99), causal) == reach(99, causal)


def test_a_chain_has_hops_and_a_model_layers() -> None:
    for number in (0, -3):
        for ask in (depths, simulated_depth):
            with pytest.raises(ConfigError, match=f"hops is {number}; expected a whole"):
                ask(number)
        with pytest.raises(ConfigError, match=f"layers is {number}; expected a whole number"):
            reach(number)
