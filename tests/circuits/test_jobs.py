"""How ablations part, and whose attention they ask for."""

import pytest
import torch

from hopscope.circuits import aim
from hopscope.circuits.ablation import Carried
from hopscope.circuits.jobs import (
    UNTOUCHED,
    Group,
    Layer,
    from_model,
    in_parts,
    most_common,
    parted,
)
from hopscope.circuits.mechanism import BY_POSITION, ITSELF, Mechanism
from hopscope.facts import Role

STAYS, MEAN = Mechanism(rest=ITSELF), Carried("mean")
X = torch.zeros(1, 1, 1)


def test_of_several_as_common_the_first() -> None:
    assert most_common([STAYS, MEAN, MEAN]) == MEAN
    assert most_common([STAYS, MEAN]) == STAYS
    assert most_common([MEAN, STAYS]) == MEAN


@pytest.mark.parametrize(
    ("change", "asks"),
    [
        (UNTOUCHED, True),
        (STAYS, False),
        (MEAN, False),
        (Mechanism(rest=BY_POSITION), True),
        (Mechanism(((Role("query"), aim("place", Role("value"))),), ITSELF), True),
        (Mechanism(((Role("query"), aim("own", Role("value"))),), ITSELF), False),
    ],
)
def test_whose_attention_has_to_be_known(change: Mechanism | Carried, asks: bool) -> None:
    assert from_model(change) == asks


def test_groups_part_where_their_ablations_do() -> None:
    same, other = (STAYS, UNTOUCHED), (MEAN, UNTOUCHED)
    changes = [[same, same], [same, other], [other, other], [same, same]]
    groups = [Group(X, ("a",), [0, 1, 3]), Group(X, ("b",), [2])]
    first = parted(0, groups, changes)
    assert [(job.group, job.members, job.changes) for job in first] == [
        (0, [0, 1, 3], same), (1, [2], other),
    ]  # fmt: skip
    second = parted(1, groups, changes)
    assert [job.members for job in second] == [[0, 3], [1], [2]]
    # Two jobs of one group differ in their prefix, or one would take the other's stream.
    assert len({job.prefix for job in second}) == 3


def test_a_layer_hands_out_the_attention_that_was_asked_for() -> None:
    pattern = torch.arange(8.0).reshape(1, 2, 2, 2)
    layer = Layer(
        0, 2, [Group(X, (), [0])] * 2, [3, 1], [pattern, None], [torch.zeros(1, 2, 2, 3)] * 2
    )
    own = layer.own(0, 1)
    assert own is not None
    assert torch.equal(own, pattern[:, 1])
    assert layer.own(0, 0) is None
    assert layer.own(1, 1) is None


def test_parts_are_of_one_size_but_the_last() -> None:
    assert list(in_parts([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert list(in_parts([], 2)) == []
