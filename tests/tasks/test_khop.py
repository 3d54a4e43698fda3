import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.configs import KHop
from hopscope.tasks import examples, sampler_of
from hopscope.tasks.khop import NOWHERE, landings


def slow_landing(tokens: list[int], place: int, hops: int) -> int:
    """One hop at a time, looking back token by token."""
    for _ in range(hops):
        earlier = [p for p in range(place) if tokens[p] == tokens[place]]
        if not earlier:
            return NOWHERE
        place = earlier[-1] + 1
    return place


@given(st.lists(st.integers(0, 3), min_size=2, max_size=14), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_hops_land_where_a_slow_walk_lands(tokens: list[int], hops: int) -> None:
    reached = landings(torch.tensor([tokens]), hops)[0]
    for place in range(len(tokens)):
        expected = [slow_landing(tokens, place, hop + 1) for hop in range(hops)]
        assert reached[place].tolist() == expected


@pytest.mark.parametrize("curriculum", [True, False])
def test_answers_and_roles_follow_the_landings(curriculum: bool) -> None:
    task = KHop(hops=3, alphabet=4, length=20, curriculum=curriculum)
    batch = examples(sampler_of(task), 0, torch.arange(40))
    reached = landings(batch.inputs, 3)
    table = [str(role) for role in task.roles()]
    for row in range(40):
        tokens = batch.inputs[row].tolist()
        for place in range(20):
            answers = [4 if p == NOWHERE else tokens[p] for p in reached[row, place].tolist()]
            assert batch.targets[row, place].tolist() == (answers if curriculum else answers[-1:])
        found = {table[n]: p for p, n in enumerate(batch.roles.role[row].tolist())}
        value = int(reached[row, -1, 0])
        assert found["query"] == 19
        if value != NOWHERE:
            assert found.get("value 0", 19) == value
            assert found["key 0"] == value - 1
            assert tokens[value - 1] == tokens[-1]
