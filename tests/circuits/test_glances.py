"""What rows look at: relations are look-ups only where they can be told from positions."""

from dataclasses import replace

import pytest
import torch

from hopscope.circuits import Drawn, OwnTask, discover, exam_of
from hopscope.models.planted import Planted
from hopscope.tasks import Roles
from tests.circuits.test_own import as_own, both_hops, own
from tests.conftest import TWO_HOPS


def test_a_relation_that_leads_everywhere_alike_is_no_look_up(two_hops: Planted) -> None:
    """Each value stands behind its key: whether a head looks it up, or goes one back, nobody
    can tell.
    """
    ours = as_own(TWO_HOPS)

    def related(count: int, seed: int) -> Drawn:
        drawn = ours.draw(count, seed)
        back = (torch.arange(drawn.inputs.shape[1]) - 1).expand(count, -1)
        return replace(drawn, relations={"of its key": back})

    task = OwnTask(related, roles=[str(role) for role in TWO_HOPS.roles()], guess=TWO_HOPS.guess(),
                   hops=2, loss=both_hops)  # fmt: skip
    with pytest.warns(UserWarning, match="the relation 'of its key' leads to the same place or of"):
        found = discover(two_hops.model, task, examples=32)
    told = [found.described(part) for part in found.parts]
    assert told
    assert not any("of its key" in each for each in told)


@pytest.mark.parametrize(
    ("leads", "fixed"),
    [
        ([[2, -1, 0], [2, -1, 0]], True),  # the mirrored place
        ([[-1, 0, 1], [-1, -1, 1]], True),  # one back, where it leads anywhere
        ([[-1, 0, 1], [-1, 0, 0]], False),
        ([[2, -1, 0], [2, -1, -1]], False),  # the same in some examples alone
    ],
)
def test_a_position_says_where_a_relation_leads(leads: list[list[int]], fixed: bool) -> None:
    exam = replace(exam_of(own(), 2), relations={"on": torch.tensor(leads)},
                   roles=Roles(*[torch.zeros(2, 3).long()] * 2))  # fmt: skip
    assert exam.by_place("on") == fixed
