"""Relations that a task names: a first answer reads them off attention, without any search."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_own import as_own, own
from torch import Tensor

from hopscope.circuits import (
    Ablation,
    Ablator,
    Circuit,
    Drawn,
    Mechanism,
    OwnTask,
    aim,
    along,
    discover,
    exam_of,
)
from hopscope.circuits.mechanism import UNIFORM
from hopscope.facts import Role
from hopscope.models.planted import Planted
from hopscope.tasks import Roles
from tests.conftest import TWO_HOPS

QUERY, VALUES = Role("query"), (Role("value", 0), Role("value", 1))


def onward(role: Tensor, chain: Tensor) -> Tensor:
    """From a query to value 0 of its chain, from there to value 1; from elsewhere nowhere."""
    table = TWO_HOPS.roles()
    steps = {table.index(QUERY): VALUES[0], table.index(VALUES[0]): VALUES[1]}
    found = torch.full(role.shape, -1)
    for example, place in np.ndindex(*role.shape):
        source = steps.get(int(role[example, place]))
        for there in range(role.shape[1]) if source else ():
            same = chain[example, there] == chain[example, place]
            if same and table[int(role[example, there])] == source:
                found[example, place] = there
    return found


def draw(count: int, seed: int) -> Drawn:
    drawn = as_own(TWO_HOPS).draw(count, seed)
    first = torch.arange(count) < count // 2
    return replace(
        drawn,
        relations={"onward": onward(torch.as_tensor(drawn.roles), torch.as_tensor(drawn.chain))},
        conditions={"first half": first, "second half": ~first},
    )


@pytest.fixture(scope="module")
def task() -> OwnTask:
    return as_own(TWO_HOPS, draw)


def test_a_task_with_relations_needs_no_search(two_hops: Planted, task: OwnTask) -> None:
    told: list[str] = []
    circuit = discover(two_hops.model, task, examples=32, watch=told.append)
    assert circuit.solved
    assert circuit.finds_its_way
    assert circuit.explained == pytest.approx(1, abs=1e-3)
    assert any(each.startswith("first answer") for each in told)
    assert not [each for each in told if each.startswith("what explains")]
    said = {part.at: circuit.described(part) for part in circuit.parts}
    assert said[2, 0] == "query ← onward ×2"
    assert all("first half" not in each for each in said.values())
    assert {part.at: part.kind for part in circuit.parts}[2, 0] == "carries"
    assert Circuit.from_dict(circuit.to_dict()) == circuit


def test_an_ablation_takes_a_relation_as_it_takes_a_role(two_hops: Planted, task: OwnTask) -> None:
    path = next(p for p in two_hops.paths if (p.reader, p.source) == (QUERY, VALUES[0]))
    ablator = Ablator(two_hops.model, exam_of(task, 8))
    head = (path.layer, path.head)
    by_role, by_relation, past, none = ablator.losses([
        Ablation.of({head: Mechanism(((QUERY, where),))})
        for where in (aim("own", VALUES[0]), along("onward"), along("onward", 2), UNIFORM)
    ])  # fmt: skip
    assert torch.equal(by_relation, by_role)
    assert float(by_relation.mean()) < 1e-6
    assert min(float(past.mean()), float(none.mean())) > 0.1


def test_without_relations_the_first_answer_is_for_the_asking(
    two_hops: Planted, circuit: Circuit
) -> None:
    quick = discover(two_hops.model, two_hops.task, examples=32, quick=True)
    assert quick.paths == circuit.paths
    assert quick.solved
    assert quick.switches.settings is not None
    assert quick.switches.settings.quick


def test_a_relation_that_leads_everywhere_alike_is_no_look_up(two_hops: Planted) -> None:
    """Each value stands behind its key: whether a head looks it up, or goes one back, nobody
    can tell.
    """

    def related(count: int, seed: int) -> Drawn:
        drawn = as_own(TWO_HOPS).draw(count, seed)
        back = (torch.arange(drawn.inputs.shape[1]) - 1).expand(count, -1)
        return replace(drawn, relations={"of its key": back})

    task = as_own(TWO_HOPS, related)
    with pytest.warns(UserWarning, match="the relation 'of its key' leads to the same place or of"):
        found = discover(two_hops.model, task, examples=32)
    told = [found.described(part) for part in found.parts]
    assert told
    assert not any("of its key" in each for each in told)


def test_a_position_says_where_a_relation_leads() -> None:
    for leads, fixed in (
        ([[2, -1, 0], [2, -1, 0]], True),  # the mirrored place
        ([[-1, 0, 1], [-1, -1, 1]], True),  # one back, where it leads anywhere
        ([[-1, 0, 1], [-1, 0, 0]], False),
        ([[2, -1, 0], [2, -1, -1]], False),  # the same in some examples alone
    ):
        exam = replace(exam_of(own(), 2), relations={"on": torch.tensor(leads)},
                       roles=Roles(*[torch.zeros(2, 3).long()] * 2))  # fmt: skip
        assert exam.by_place("on") == fixed, leads
