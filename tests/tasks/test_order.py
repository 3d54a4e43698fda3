import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.tasks.order import permuted, visited


@given(st.integers(1, 700), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=60, deadline=None)
def test_every_epoch_is_a_permutation(size: int, key: int) -> None:
    places = permuted(torch.full((size,), key), torch.arange(size), size)
    assert sorted(places.tolist()) == list(range(size))


def test_an_epoch_visits_every_example_once_across_steps() -> None:
    seeds = torch.tensor([3, 4])
    steps = [visited(seeds, step, batch=7, examples=21) for step in range(6)]
    first, second = torch.cat(steps[:3], 1), torch.cat(steps[3:], 1)
    for member in range(2):
        assert sorted(first[member].tolist()) == list(range(21))
        assert sorted(second[member].tolist()) == list(range(21))
    assert first.tolist() != second.tolist()
    assert first[0].tolist() != first[1].tolist()


def test_the_batch_size_only_cuts_the_same_order() -> None:
    seeds = torch.tensor([0])
    whole = visited(seeds, 0, batch=200, examples=90)
    for batch in (1, 4, 50):
        cut = [visited(seeds, step, batch=batch, examples=90) for step in range(200 // batch)]
        assert torch.cat(cut, 1).tolist() == whole.tolist(), batch


def test_the_order_of_a_seed_is_the_same_in_every_version() -> None:
    """Runs are made again from recipes alone: another permutation would be other runs."""
    found = visited(torch.tensor([0, 5]), 0, batch=8, examples=12).tolist()
    assert found == [[7, 10, 0, 2, 6, 8, 1, 4], [6, 8, 0, 9, 11, 3, 1, 5]]
