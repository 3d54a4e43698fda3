"""Plans of planted circuits: their reach, their paths, and layers that do nothing."""

import pytest

from hopscope.configs import Retrieval
from hopscope.errors import ModelError
from hopscope.facts import Role, chain_of_facts
from hopscope.models.plans import Lookup, chain_plan, register, triple_plan, twinned, with_spares
from hopscope.theory import Path, follow


@pytest.mark.parametrize("hops", range(1, 17))
def test_a_chain_takes_the_fewest_layers_there_can_be(hops: int) -> None:
    plan = chain_plan(Retrieval(hops=hops))
    assert 2 ** (len(plan) - 2) - 1 < hops <= 2 ** (len(plan) - 1) - 1
    assert all(len(lookups) == 1 for lookups in plan)


@pytest.mark.parametrize("hops", range(1, 9))
def test_its_paths_bring_every_symbol_and_none_can_be_missed(hops: int) -> None:
    plan, graph = chain_plan(Retrieval(hops=hops)), chain_of_facts(hops)
    paths = [
        Path(layer, 0, reader, source)
        for layer, lookups in enumerate(plan)
        for reader, source in lookups[0].paths
    ]
    assert held(paths, hops) >= set(graph.symbols)
    for left_out in paths:
        rest = [path for path in paths if path != left_out]
        found = follow(graph, {path.reading: path for path in rest})
        # Without a value's own key the next look-up has nothing to find it by.
        assert found.jumps or not held(rest, hops) >= set(graph.symbols), left_out


def held(paths: list[Path], hops: int) -> set[str]:
    """What the query comes to hold along these paths."""
    found = follow(chain_of_facts(hops), {path.reading: path for path in paths})
    return set(found.holdings[Role("query", 0)])


def test_registers_begin_with_the_symbol_itself() -> None:
    assert [register(number) for number in (1, 2, 3)] == ["symbol", "register 2", "register 3"]


def test_the_triple_copies_twice_and_looks_up_twice() -> None:
    copies, first, last = triple_plan()
    assert [lookup.back for lookup in copies] == [1, 2]
    assert sorted(lookup.late for lookup in first) == [-last[0].late, last[0].late]
    assert len(last[0].match) == 2


def test_twins_stand_beside_each_other() -> None:
    one, other = Lookup(back=1), Lookup(back=2)
    assert twinned([one, other]) == [one, one, other, other]


def test_spare_layers_do_nothing_wherever_they_are() -> None:
    plan = [[Lookup(back=1)], [Lookup(back=2)]]
    assert with_spares(plan, {0, 2}) == [(), plan[0], (), plan[1]]
    with pytest.raises(ModelError, match=r"spare layers are \[3\]; the model has layers 0 … 2"):
        with_spares(plan, {3})
