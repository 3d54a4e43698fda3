"""Discovery on models whose circuits are known, and on those that have none."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from hopscope import load
from hopscope.circuits import (
    Ablation,
    Ablator,
    Circuit,
    Drawn,
    OwnTask,
    attention_maps,
    discover,
    exam_of,
    subject_of,
)
from hopscope.circuits.mechanism import AS_IS
from hopscope.circuits.subject import TransformerSubject
from hopscope.configs import ConditionalRetrieval, Discovery, Model, Retrieval
from hopscope.errors import CircuitError, ConfigError, NotLearned
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.tasks import dataset


def found_paths(circuit: Circuit) -> set[object]:
    return set(circuit.paths) | {other.path for other in circuit.alternatives}


def task_of(hops: int, chains: int) -> Retrieval:
    symbols = chains * (hops + 1)
    return Retrieval(hops=hops, chains=chains, dim=symbols + symbols % 2, symbols="one-hot")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hops", "chains", "options"),
    [
        (1, 2, {}),
        (2, 2, {"twins": True}),
        (2, 4, {"spare_layers": [1], "heads": 2}),
        (3, 2, {"twins": True}),
        (4, 2, {}),
        (5, 2, {"spare_layers": [0]}),
    ],
)
def test_planted_circuits_are_recovered_exactly(
    hops: int, chains: int, options: dict[str, object]
) -> None:
    model = planted(task_of(hops, chains), **options)  # type: ignore[arg-type]
    circuit = discover(model.model, model.task, examples=32)
    assert found_paths(circuit) == set(model.paths)
    assert circuit.solved
    assert not circuit.unexplained
    assert circuit.flow is not None
    assert not circuit.flow.missed


@pytest.mark.slow
def test_a_planted_conditional_circuit_is_recovered_exactly() -> None:
    task = ConditionalRetrieval(chains=2, dim=10, symbols="one-hot", decoys=1)
    model = planted(task)
    assert found_paths(discover(model.model, task, examples=32)) == set(model.paths)


@pytest.fixture(scope="module")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=32)


def test_a_circuit_put_onto_its_model_has_the_loss_it_says(
    circuit: Circuit, two_hops: Planted
) -> None:
    ablator = Ablator(subject_of(two_hops.model), exam_of(two_hops.task, 64, seed=5))
    losses = ablator.losses([circuit.ablation()]).mean((0, 1))
    assert losses.tolist() == pytest.approx(list(circuit.losses.ideal), abs=1e-6)


def test_the_same_seed_finds_the_same_and_another_the_same_paths(
    circuit: Circuit, two_hops: Planted
) -> None:
    again = discover(two_hops.model, two_hops.task, examples=32)
    other = discover(two_hops.model, two_hops.task, examples=32, seed=1)
    assert again == circuit
    assert other != circuit
    assert other.paths == circuit.paths


def test_previous_token_rows_are_needed_where_keys_have_one_role_for_all() -> None:
    """Where a role cannot be named, a row is explained by the position before: it still tells
    later heads where to look.
    """
    run = load("gallery/planted")
    names = ["origin" if role.kind == "key" else str(role) for role in run.task.roles()]
    roles = list(dict.fromkeys(names))
    number = torch.tensor([roles.index(name) for name in names])

    def draw(examples: int, seed: int) -> Drawn:
        batch = dataset(run.task, seed, examples, "validation")
        role = number[batch.roles.role.long()]
        return Drawn(batch.inputs, batch.targets, role, batch.roles.chain)

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.view_as(targets) - targets).square().mean((-1, -2))

    task = OwnTask(draw, roles=roles, guess=run.task.guess(), loss=loss)
    circuit = discover(run.model, task, examples=64)
    first = [part for part in circuit.parts if part.layer == 0]
    assert {str(role) for part in first for role in part.readers} == {
        "value 0", "value 1", "value 2"
    }  # fmt: skip
    assert {part.kind for part in first} == {"locates"}
    alone = {
        report.at: replace(
            report.mechanism, aims=tuple((r, AS_IS) for r in report.mechanism.readers)
        )
        for report in circuit.heads
    }
    ablator = Ablator(subject_of(run.model), exam_of(task, 64, seed=9))
    assert float(ablator.losses([Ablation.of(alone)]).mean()) < circuit.losses.limit
    assert circuit.finds_its_way


def test_a_circuit_knows_its_model(circuit: Circuit, two_hops: Planted) -> None:
    circuit.check_model(subject_of(two_hops.model).digest())
    other = planted(two_hops.task, heads=2).model
    with pytest.raises(CircuitError, match="this circuit was found in another model"):
        circuit.check_model(subject_of(other).digest())


def test_a_model_that_has_not_learned_is_refused_unless_forced(two_hops: Planted) -> None:
    config = Model(layers=1, heads=1, d_model=8)
    model = Transformer.seeded(config, two_hops.task.interface(), 0)
    with pytest.raises(NotLearned, match=r"its loss is 0\.\d+ where guessing gives 0\.083"):
        discover(model, two_hops.task, examples=8)
    circuit = discover(model, two_hops.task, examples=8, force=True)
    assert circuit.switches.forced


def test_a_task_on_which_guessing_is_perfect_is_refused_and_its_maps_are_not() -> None:
    task = task_of(hops=2, chains=1)
    model = Transformer.seeded(Model(layers=2, heads=1, d_model=8), task.interface(), 0)
    for force in (False, True):
        with pytest.raises(CircuitError, match="guessing has a loss of 0 on this task .* examine"):
            discover(model, task, examples=8, force=force)
    assert attention_maps(model, task, 4).own.shape[:2] == (2, 1)


def test_a_digest_is_made_before_anything_is_searched(two_hops: Planted) -> None:
    class Nameless(TransformerSubject):
        def digest(self) -> str:
            raise RuntimeError("no digest")

    unlearned = Transformer.seeded(Model(layers=1, heads=1), two_hops.task.interface(), 0)
    with pytest.raises(RuntimeError, match="no digest"):
        discover(Nameless(unlearned), two_hops.task, examples=8)


def test_more_examples_than_the_machine_holds_are_refused_at_once(two_hops: Planted) -> None:
    with pytest.raises(CircuitError, match=r"examples of 10 positions would take about .* GiB"):
        discover(two_hops.model, two_hops.task, examples=2 * 10**9)


def test_settings_are_given_whole_or_by_name_and_kept(two_hops: Planted) -> None:
    settings = Discovery(examples=16, batches=2)
    by_name = discover(two_hops.model, two_hops.task, examples=16, batches=2)
    assert discover(two_hops.model, two_hops.task, settings=settings) == by_name
    assert by_name.switches.settings == settings
    with pytest.raises(ConfigError, match="Discovery.needed: .* got 0.5"):
        discover(two_hops.model, two_hops.task, needed=0.5)
    with pytest.raises(ConfigError, match="Discovery.exmples: unknown field"):
        discover(two_hops.model, two_hops.task, exmples=16)


def test_a_threshold_that_no_part_reaches_makes_every_path_weak(two_hops: Planted) -> None:
    strict = discover(two_hops.model, two_hops.task, examples=16, needed=1e6)
    assert {part.kind for part in strict.parts if part.paths} == {"weak"}
