"""First answers: on planted models they are the circuit, without any search."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from hopscope.circuits import (
    Ablation,
    Ablator,
    Circuit,
    Drawn,
    Mechanism,
    OwnTask,
    aim,
    discover,
    exam_of,
    subject_of,
)
from hopscope.circuits.first import first_answer, steps_of
from hopscope.circuits.glances import _mixtures, _seen
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, UNIFORM, along
from hopscope.circuits.painter import Painter
from hopscope.circuits.search import Search
from hopscope.facts import Role
from hopscope.models.planted import Planted
from hopscope.tasks import Roles, dataset
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
    batch = dataset(TWO_HOPS, seed, count, "validation")
    role, chain = batch.roles.role, batch.roles.chain
    first = torch.arange(count) < count // 2
    return Drawn(
        batch.inputs,
        batch.targets,
        role,
        chain,
        relations={"onward": onward(role, chain)},
        conditions={"first half": first, "second half": ~first},
    )


def marks(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.view_as(targets) - targets).square().mean(-1)


@pytest.fixture(scope="module")
def task() -> OwnTask:
    names = [str(role) for role in TWO_HOPS.roles()]
    return OwnTask(draw, roles=names, guess=TWO_HOPS.guess(), hops=2, loss=marks)


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def circuit(two_hops: Planted, task: OwnTask, told: list[str]) -> Circuit:
    return discover(two_hops.model, task, examples=32, watch=told.append)


def test_a_task_with_relations_needs_no_search(circuit: Circuit, told: list[str]) -> None:
    assert circuit.solved
    assert circuit.finds_its_way
    assert circuit.explained == pytest.approx(1, abs=1e-3)
    assert [each.split(":")[0] for each in told if "first answer" in each]
    assert not [each for each in told if each.startswith("what explains")]


def test_heads_that_follow_a_relation_are_said_to(circuit: Circuit) -> None:
    said = {part.at: circuit.described(part) for part in circuit.parts}
    assert said[2, 0] == "query ← onward ×2"
    assert all("first half" not in each for each in said.values())
    kinds = {part.at: part.kind for part in circuit.parts}
    assert kinds[2, 0] == "carries"


def test_an_ablation_takes_a_relation_as_it_takes_a_role(two_hops: Planted, task: OwnTask) -> None:
    path = next(p for p in two_hops.paths if (p.reader, p.source) == (QUERY, VALUES[0]))
    ablator = Ablator(subject_of(two_hops.model), exam_of(task, 8))
    head = (path.layer, path.head)
    by_role, by_relation, past, none = ablator.losses([
        Ablation.of({head: Mechanism(((QUERY, where),))})
        for where in (aim("own", VALUES[0]), along("onward"), along("onward", 2), UNIFORM)
    ])  # fmt: skip
    assert torch.equal(by_relation, by_role)
    assert float(by_relation.mean()) < 1e-6
    assert min(float(past.mean()), float(none.mean())) > 0.1


def test_a_circuit_of_relations_is_read_as_it_was_written(circuit: Circuit) -> None:
    assert Circuit.from_dict(circuit.to_dict()) == circuit


def test_without_relations_the_first_answer_is_for_the_asking(two_hops: Planted) -> None:
    quick = discover(two_hops.model, two_hops.task, examples=32, quick=True)
    whole = discover(two_hops.model, two_hops.task, examples=32)
    assert quick.paths == whole.paths
    assert quick.solved
    assert quick.switches.settings is not None
    assert quick.switches.settings.quick


def test_a_mixture_has_another_where_its_relation_leads_nowhere(task: OwnTask) -> None:
    """A head looks 0.6 onward and 0.4 at itself, and from elsewhere at the first position."""
    exam = exam_of(task, 8)
    places = torch.arange(exam.length)
    there = exam.relations["onward"]
    itself, onward = (torch.eye(exam.length)[at] for at in (places, there.clamp_min(0)))
    nowhere = torch.eye(exam.length)[0].expand_as(onward)
    pattern = torch.where((there >= 0)[..., None], 0.4 * itself + 0.6 * onward, nowhere)
    letter = Role("other")
    every = replace(exam, table=(letter,), roles=Roles(torch.zeros_like(there), exam.roles.chain))
    painter = Painter(every, causal=True)
    spots = painter.spots(letter, exam.length)
    seen = _seen(pattern[:, None], painter, spots, letter)
    led, rest = _mixtures(seen, 0, torch.ones(len(spots)).bool(), "twice")
    assert str(led) == "0.60 onward + 0.40 itself if twice and onward leads"
    assert rest.when == "twice"
    assert not any(target.relation for target in rest.targets)


def test_the_first_answer_is_what_its_loss_says(two_hops: Planted, task: OwnTask) -> None:
    subject = subject_of(two_hops.model)
    search = Search(Ablator(subject, exam_of(task, 16)))
    first = first_answer(search, search.untouched())
    assert first.solved
    states = first.draft.states
    assert first.loss == pytest.approx(float(search.losses([states.ideal]).mean()))
    assert states.own.live == states.ideal.live
    assert {states.own[head].of(role) for head, role in states.ideal.live} == {AS_IS}


def test_heads_of_one_layer_that_do_the_same_are_one_step(two_hops: Planted, task: OwnTask) -> None:
    search = Search(Ablator(subject_of(two_hops.model), exam_of(task, 8)))
    state = search.untouched().only([])
    layers = ((0, 0), (1, 0), (2, 0))
    for head in layers:
        state = state.looking_at([(head, QUERY), (head, VALUES[0])], along("onward"))
    steps = steps_of(state.looking_at([((0, 0), VALUES[1])], BY_POSITION), 0.2)
    assert [(step.head, len(step.rows), step.named) for step in steps] == [
        ((0, 0), 1, False), ((0, 0), 2, True), ((1, 0), 2, True), ((2, 0), 2, True),
    ]  # fmt: skip
