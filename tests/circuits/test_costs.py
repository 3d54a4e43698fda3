"""What the circuit and its parts are worth, against ablations made by hand."""

import pytest

from hopscope.circuits import Ablation, Ablator, Circuit, discover, exam_of, subject_of
from hopscope.circuits.mechanism import Mechanism
from hopscope.models.planted import Planted


@pytest.fixture(scope="module")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=32)


def test_the_cost_of_a_path_is_the_loss_without_it(circuit: Circuit, two_hops: Planted) -> None:
    ablator = Ablator(subject_of(two_hops.model), exam_of(two_hops.task, 512, seed=9))
    whole = dict(circuit.ablation().changes)
    for part in circuit.parts:
        mechanism = whole[part.at]
        assert isinstance(mechanism, Mechanism)
        for role in part.readers:
            mechanism = mechanism.without(role)
        loss = float(ablator.losses([Ablation.of({**whole, part.at: mechanism})]).mean())
        assert loss == pytest.approx(part.cost.mean, rel=0.1, abs=1e-6)


def test_the_first_limit_and_the_means_are_those_of_the_model(
    circuit: Circuit, two_hops: Planted
) -> None:
    """With no head doing anything; with each idle head given back."""
    ablator = Ablator(subject_of(two_hops.model), exam_of(two_hops.task, 512, seed=9))
    whole = dict(circuit.ablation().changes)
    ablated = Ablation.of({head: Mechanism(rest=its.rest) for head, its in whole.items()})
    loss = float(ablator.losses([ablated]).mean())
    assert circuit.losses.mean("ablated") == pytest.approx(loss, rel=0.1)
    assert circuit.losses.limit == pytest.approx(two_hops.task.guess() / 15)
    assert {(each.layer, each.head) for each in circuit.restored} == {
        head for head, its in whole.items() if not its.aims
    }
    for each in circuit.restored:
        rest = {head: its for head, its in whole.items() if head != (each.layer, each.head)}
        loss = float(ablator.losses([Ablation.of(rest)]).mean())
        assert each.loss == pytest.approx(loss, abs=1e-6)


def test_a_cost_lies_in_its_interval(circuit: Circuit) -> None:
    for part in circuit.parts:
        for cost in (part.cost, part.own_cost, part.alone_cost):
            assert cost.low <= cost.mean <= cost.high
    assert any(part.cost.low < part.cost.mean for part in circuit.parts)
