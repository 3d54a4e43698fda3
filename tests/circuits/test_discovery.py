"""Discovery on models whose circuits are known, and on those that have none."""

from dataclasses import replace

import pytest
import torch
from test_own import as_own
from torch import Tensor

from hopscope import load
from hopscope.circuits import (
    Ablation,
    Ablator,
    Circuit,
    Drawn,
    Mechanism,
    OwnTask,
    adapter_of,
    aim,
    attention_maps,
    discover,
    exam_of,
)
from hopscope.circuits.mechanism import AS_IS
from hopscope.circuits.progress import SECONDS, Progress
from hopscope.configs import ConditionalRetrieval, Discovery, Model, Retrieval, VectorTask
from hopscope.errors import CircuitError, ConfigError, NotLearned
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted


def task_of(hops: int, chains: int) -> Retrieval:
    symbols = chains * (hops + 1)
    return Retrieval(hops=hops, chains=chains, dim=symbols + symbols % 2, symbols="one-hot")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "options"),
    [
        (task_of(1, 2), {}),
        (task_of(2, 2), {"twins": True}),
        (task_of(2, 4), {"spare_layers": [1], "heads": 2}),
        (task_of(3, 2), {"twins": True}),
        (task_of(4, 2), {}),
        (task_of(5, 2), {"spare_layers": [0]}),
        (ConditionalRetrieval(chains=2, dim=10, symbols="one-hot", decoys=1), {}),
    ],
    ids=str,
)
def test_planted_circuits_are_recovered_exactly(
    task: VectorTask, options: dict[str, object]
) -> None:
    model = planted(task, **options)  # type: ignore[arg-type]
    circuit = discover(model.model, task, examples=32)
    others = {other.path for other in circuit.alternatives}
    assert {*circuit.paths} | others == {*model.paths}
    assert circuit.solved
    assert not circuit.unexplained
    assert not circuit.flow.missed


def test_a_small_planted_circuit_is_recovered_exactly(circuit: Circuit, two_hops: Planted) -> None:
    assert set(circuit.paths) == set(two_hops.paths)
    assert circuit.alternatives == ()
    assert not circuit.unexplained
    assert all(part.votes == 1 for part in circuit.parts)
    assert {part.at: part.kind for part in circuit.parts} == {
        (0, 0): "locates", (1, 0): "carries", (2, 0): "carries",
    }  # fmt: skip
    assert {report.at: report.name for report in circuit.heads}[0, 0] == "previous position"


def test_the_losses_and_costs_of_a_circuit_are_those_of_ablations_made_by_hand(
    circuit: Circuit, two_hops: Planted
) -> None:
    ablator = Ablator(two_hops.model, exam_of(two_hops.task, 512, seed=9))
    whole = {head: its for head, its in circuit.ablation().changes if isinstance(its, Mechanism)}

    def loss(changes: dict[tuple[int, int], Mechanism]) -> float:
        return float(ablator.losses([Ablation.of({**changes})]).mean())

    assert circuit.losses.mean("ideal") == pytest.approx(loss(whole), abs=1e-6)
    nothing = {head: Mechanism(rest=its.rest) for head, its in whole.items()}
    assert circuit.losses.mean("ablated") == pytest.approx(loss(nothing), rel=0.1)
    assert circuit.losses.limit == pytest.approx(two_hops.task.chance() / 15)
    for part in circuit.parts:
        without = whole[part.at]
        for role in part.readers:
            without = without.without(role)
        assert part.cost.mean == pytest.approx(loss({**whole, part.at: without}), rel=0.1, abs=1e-6)
        for cost in (part.cost, part.own_cost, part.alone_cost):
            assert cost is None or cost.low <= cost.mean <= cost.high
    assert any(part.cost.low < part.cost.mean for part in circuit.parts)
    idle = {head for head, its in whole.items() if not its.aims}
    assert {(each.layer, each.head) for each in circuit.restored} == idle
    for each in circuit.restored:
        rest = {head: its for head, its in whole.items() if head != (each.layer, each.head)}
        assert each.loss == pytest.approx(loss(rest), abs=1e-6)


def test_a_twin_stands_in_for_a_path_with_the_loss_that_it_has_in_its_place() -> None:
    """Every head has a twin in its layer that does the same."""
    twins = planted(task_of(2, 2), twins=True)
    circuit = discover(twins.model, twins.task, examples=32)
    assert circuit.alternatives
    ablator = Ablator(twins.model, exam_of(twins.task, 128, seed=4))
    for other in circuit.alternatives:
        old, new = other.instead_of, other.path
        assert new in twins.paths
        assert new not in circuit.paths
        assert old in circuit.paths
        assert replace(new, layer=old.layer, head=old.head) == old
        changes = {report.at: report.mechanism for report in circuit.heads}
        at, its = (old.layer, old.head), (new.layer, new.head)
        changes[at] = changes[at].without(old.reader)
        changes[its] = changes[its].with_aim(new.reader, aim("own", new.source))
        loss = float(ablator.losses([Ablation.of({**changes})]).mean())
        assert loss == pytest.approx(other.loss, abs=1e-4)
        assert loss <= circuit.losses.limit


def test_the_same_seed_finds_the_same_and_another_the_same_paths(
    circuit: Circuit, two_hops: Planted
) -> None:
    again = discover(two_hops.model, two_hops.task, settings=Discovery(examples=32))
    other = discover(two_hops.model, two_hops.task, examples=32, seed=1)
    assert again == circuit
    assert other != circuit
    assert other.paths == circuit.paths


def test_previous_token_rows_are_needed_where_keys_have_one_role_for_all() -> None:
    """Where a role cannot be named, a row is explained by the position before: it still tells
    later heads where to look.
    """
    run = load("gallery/planted")
    ours = as_own(run.task)
    names = ["origin" if role.kind == "key" else str(role) for role in run.task.roles()]
    roles = list(dict.fromkeys(names))
    number = torch.tensor([roles.index(name) for name in names])

    def draw(examples: int, seed: int) -> Drawn:
        drawn = ours.draw(examples, seed)
        return replace(drawn, roles=number[torch.as_tensor(drawn.roles).long()], answers_at=None)

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.view_as(targets) - targets).square().mean((-1, -2))

    task = OwnTask(draw, roles=roles, guess=run.task.chance(), loss=loss)
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
    ablator = Ablator(adapter_of(run.model), exam_of(task, 64, seed=9))
    assert float(ablator.losses([Ablation.of(alone)]).mean()) < circuit.losses.limit
    assert circuit.finds_its_way


def test_an_idle_head_that_helps_is_put_back_by_position() -> None:
    """The rest was trained with what it adds everywhere; paths show less without it."""
    run = load("gallery/demo")
    circuit = discover(run.model, run.task, examples=32)
    assert circuit.finds_its_way
    put_back = [report.at for report in circuit.heads if report.name == "by position"]
    assert put_back
    for part in (part for part in circuit.parts if part.at in put_back):
        assert part.cost.mean > 1.5 * circuit.losses.mean("ideal")


def test_a_model_that_has_not_learned_is_refused_unless_forced(two_hops: Planted) -> None:
    config = Model(layers=1, heads=1, d_model=8)
    model = Transformer.seeded(config, two_hops.task.interface(), 0)
    with pytest.raises(NotLearned, match=r"its loss is 0\.\d+ where guessing gives 0\.083"):
        discover(model, two_hops.task, examples=8)
    assert discover(model, two_hops.task, examples=8, force=True).switches.forced


def test_a_task_on_which_guessing_is_perfect_is_refused_and_its_maps_are_not() -> None:
    task = task_of(hops=2, chains=1)
    model = Transformer.seeded(Model(layers=2, heads=1, d_model=8), task.interface(), 0)
    for force in (False, True):
        with pytest.raises(CircuitError, match="guessing has a loss of 0 on this task .* examine"):
            discover(model, task, examples=8, force=force)
    assert attention_maps(model, task, 4).own.shape[:2] == (2, 1)


def test_more_examples_than_the_machine_holds_are_refused_at_once(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples alone, or what a search takes for them, although the examples have room."""
    with pytest.raises(CircuitError, match=r"examples of 10 positions would take about .* GiB"):
        discover(two_hops.model, two_hops.task, examples=2 * 10**9)
    monkeypatch.setattr("hopscope.circuits.budget.memory_bytes", lambda: 2**24)
    with pytest.raises(CircuitError, match=r"a search with [\d,]+ examples would take about"):
        discover(two_hops.model, two_hops.task, examples=1_000)


def test_settings_are_kept_and_checked(two_hops: Planted) -> None:
    settings = Discovery(examples=16, batches=2, needed=1e6)
    strict = discover(two_hops.model, two_hops.task, examples=16, batches=2, needed=1e6)
    assert strict.switches.settings == settings
    assert {part.kind for part in strict.parts if part.paths} == {"weak"}
    with pytest.raises(ConfigError, match="Discovery.needed: .* got 0.5"):
        discover(two_hops.model, two_hops.task, needed=0.5)


@pytest.mark.slow
def test_a_row_stays_without_which_the_circuit_would_not_find_its_way() -> None:
    """In transformer C value 2 keeps what it adds to itself: without it the loss is 0.145."""
    run = load("gallery/transformer-c")
    circuit = discover(run.model, run.task)
    assert circuit.finds_its_way
    assert Role("value", 2) in circuit.mechanism(1, 0).readers


def test_within_a_step_the_rest_is_told_from_what_is_done() -> None:
    said: list[str] = []
    now = [0.0]
    progress = Progress(said.append, lambda: now[0])
    progress.step("what explains 8 rows; 0.1 by it")
    progress.at(1, 8)
    now[0] = SECONDS
    progress.at(0, 8)
    progress.at(2, 8)
    progress.at(3, 8)
    assert said == [
        "what explains 8 rows; 0.1 by it",
        f"what explains 8 rows: 2 of 8, about {3 * SECONDS:.0f} s left",
    ]
    progress.step("measuring")
    now[0] = 3 * SECONDS
    progress.at(4, 5)
    assert said[-1] == f"measuring: 4 of 5, about {2 * SECONDS / 4:.0f} s left"
