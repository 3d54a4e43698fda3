import pytest

from hopscope.errors import FactError
from hopscope.facts import chain_of_facts
from hopscope.theory import depths, flow, reach, simulated_depth


@pytest.mark.parametrize("hops", [*range(1, 41), 64])
def test_intervals_say_what_sets_say(hops: int) -> None:
    for causal in (True, False):
        by_sets = flow(chain_of_facts(hops), causal=causal).minimum[f"x{hops}"]
        assert simulated_depth(hops, causal) == by_sets


def test_closed_forms_are_what_the_intervals_say() -> None:
    for hops in range(1, 513):
        exact = depths(hops)
        assert simulated_depth(hops, causal=True) == exact.causal
        assert simulated_depth(hops, causal=False) == exact.bidirectional
        assert exact.theorem_1 <= exact.bidirectional <= exact.causal


def test_reach_is_the_inverse() -> None:
    for layers in range(2, 10):
        assert depths(reach(layers)).causal == layers
        assert depths(reach(layers) + 1).causal == layers + 1
        assert depths(reach(layers, causal=False)).bidirectional == layers
        assert depths(reach(layers, causal=False) + 1).bidirectional == layers + 1


def test_ten_thousand_hops_can_be_asked() -> None:
    assert simulated_depth(10_000) == depths(10_000).causal == 15
    assert simulated_depth(10_000, causal=False) == depths(10_000).bidirectional == 10


@pytest.mark.parametrize("hops", [0, -3])
def test_a_chain_has_hops(hops: int) -> None:
    for ask in (depths, simulated_depth):
        with pytest.raises(FactError, match=f"hops is {hops}; a chain has at least 1 hop"):
            ask(hops)
    with pytest.raises(FactError, match="layers is 0"):
        reach(0)


@pytest.mark.parametrize("layers", [0, -1])
def test_layers_are_counted(layers: int) -> None:
    with pytest.raises(FactError, match=f"layers is {layers}; expected a whole number, at least 1"):
        reach(layers)
