"""Backup heads: rows left out that can do a path's step, and those that cannot."""

from dataclasses import replace

import pytest

from hopscope.circuits import Ablator, Circuit, discover, exam_of, subject_of
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.mechanism import aim
from hopscope.configs import Retrieval
from hopscope.models.planted import Planted, planted


@pytest.fixture(scope="module")
def twins() -> Planted:
    """Every head has a twin in its layer that does the same."""
    return planted(Retrieval(hops=2, chains=2, dim=6, symbols="one-hot"), twins=True)


@pytest.fixture(scope="module")
def circuit(twins: Planted) -> Circuit:
    return discover(twins.model, twins.task, examples=32)


def test_the_twin_of_a_path_stands_in_for_it(circuit: Circuit, twins: Planted) -> None:
    assert circuit.alternatives
    for other in circuit.alternatives:
        assert other.path in twins.paths
        assert other.path not in circuit.paths
        assert other.instead_of in circuit.paths
        same_step = replace(other.path, layer=other.instead_of.layer, head=other.instead_of.head)
        assert same_step == other.instead_of


def test_its_loss_is_that_of_the_circuit_with_the_one_for_the_other(
    circuit: Circuit, twins: Planted
) -> None:
    ablator = Ablator(subject_of(twins.model), exam_of(twins.task, 128, seed=4))
    for other in circuit.alternatives:
        changes = {report.at: report.mechanism for report in circuit.heads}
        old, new = other.instead_of, other.path
        at, its = (old.layer, old.head), (new.layer, new.head)
        changes[at] = changes[at].without(old.reader)
        changes[its] = changes[its].with_aim(new.reader, aim("own", new.source))
        loss = float(ablator.losses([Ablation.of({**changes})]).mean())
        assert loss == pytest.approx(other.loss, abs=1e-4)
        assert loss <= circuit.losses.limit


def test_without_twins_nobody_stands_in(two_hops: Planted) -> None:
    assert discover(two_hops.model, two_hops.task, examples=32).alternatives == ()
