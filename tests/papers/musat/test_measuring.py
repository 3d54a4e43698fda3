"""Rows of Musat, of what is computed or asked and of transformers that were trained for seconds."""

import json
from collections.abc import Sequence
from pathlib import Path

import musat_rows
import numpy as np
import pytest
import torch
from torch import Tensor

from hopscope.circuits import Ablation, Ablator, Circuit, adapter_of, discover, exam_of
from hopscope.circuits.changes import changes_of
from hopscope.circuits.tracking import emergence
from hopscope.configs import Asking, Experiment, LlmBench, Model, Prompts, Retrieval, Training
from hopscope.errors import ResultsError
from hopscope.llm.results import results
from hopscope.llm.stepper import ask
from hopscope.milestones import WINDOW, first_below, learned, learned_below
from hopscope.models.planted import planted
from hopscope.papers.musat import measuring
from hopscope.papers.musat.measure_answers import answer_rows
from hopscope.papers.musat.measure_changed import (
    CHECK_EVERY,
    STEPS,
    changed_rows,
    first_two,
    start_again,
)
from hopscope.papers.musat.measure_depth import PLANTED, depth_rows
from hopscope.papers.musat.measure_places import EXAMPLES, after, losses, place_rows
from hopscope.papers.musat.measure_runs import (
    FRESH_EXAMPLES,
    circuit_row,
    emergence_row,
    loss_rows,
    on_fresh_examples,
    removals,
    story,
    without_steps,
)
from hopscope.papers.musat.rows import (
    AnswerRow,
    CircuitRow,
    DepthRow,
    Layers,
    LossRow,
    PlantedRow,
    Story,
    longest,
)
from hopscope.papers.musat.targets import TARGETS
from hopscope.papers.row import Row, read_row
from hopscope.store import Store
from hopscope.store.gallery import find
from hopscope.study import RunStudy, load
from hopscope.tasks import dataset, hop_losses
from hopscope.training import Run, train
from hopscope.training.trainer import Trainer

EXPERIMENT = Experiment(
    task=Retrieval(hops=1, chains=2, position="pair", base=10, dim=8),
    model=Model(layers=2, heads=1, d_model=32, init="fan-in"),
    training=Training(
        steps=250, batch=32, examples=2**12, lr=4e-3, validate_every=20, checkpoint_every=25,
        checkpoint_at=(245,), validation_examples=64, precision="float32",
    ),
)  # fmt: skip
"""Learns induction with two heads."""


def again(row: Row) -> Row:
    """The row as it comes back from a file."""
    return read_row((type(row),), json.loads(row.to_json()))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(EXPERIMENT, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def emerged(run: Run) -> CircuitRow:
    """Its row with everything in it."""
    return emergence_row(run)


def test_rows_of_losses_are_those_of_the_run(run: Run) -> None:
    (row,) = loss_rows(run)
    assert again(row) == row
    about = ("seed", "hops", "curriculum", "layers", "heads", "steps", "batch", "examples")
    assert [getattr(row, name) for name in about] == [0, 1, True, 2, 1, 250, 32, 4096]
    assert row.seconds == run.folder.manifest.seconds > 0
    assert row.precision == run.folder.manifest.precision == "float32"
    assert row.final == pytest.approx(run.final_losses()[0], abs=1e-5)
    steps, losses = run.losses()
    assert row.guess == 0.5  # of two chains
    assert row.crossed == tuple(first_below(steps, losses[:, 0], learned_below(row.guess)))
    assert row.crossed != (None,)
    assert max(row.final) < row.guess
    seen, validation = run.losses("validation")
    places = [seen.tolist().index(step) for step in row.course.steps]
    assert (places[0], places[-1]) == (0, len(seen) - 1)
    # Sparse at first, every step in the last 100: all of the first are kept, few of the last.
    assert row.course.steps[:12] == tuple(seen[seen < 150].tolist())
    late = row.course.steps[12:]
    assert len(late) < 40
    assert max(np.diff(late)) <= 5
    (course,) = row.course.losses
    assert course == pytest.approx(validation[places, 0, 0], abs=1e-5)
    (train,) = row.course.train
    assert train[0] == pytest.approx(losses[0, 0, 0], abs=1e-5)
    before = [
        losses[(steps > step - WINDOW) & (steps <= step), 0, 0].mean()
        for step in row.course.steps[1:]
    ]
    assert train[1:] == pytest.approx(before, abs=1e-5)


def changed(seeds: tuple[int, ...] = (0,), **training: object) -> Experiment:
    """The experiment, trained differently."""
    other = EXPERIMENT.training.model_copy(update=training)
    return EXPERIMENT.model_copy(update={"training": other, "seeds": seeds})


def test_of_a_fleet_the_first_is_examined_and_followed(store: Store, emerged: CircuitRow) -> None:
    fleet = train(changed((3, 1), steps=20, checkpoint_every=10), store)
    assert [row.seed for row in loss_rows(fleet)] == [3, 1]
    row = circuit_row(fleet)
    assert (row.seed, row.step) == (3, RunStudy(fleet).best_late_checkpoint().step)
    digest = adapter_of(fleet.model.member(0)).digest()
    circuit = Circuit.model_validate({**emerged.circuit, "model": digest})
    found = emergence(fleet, circuit, member=0, steps_per_epoch=128.0)
    row = emerged.model_copy(update={"circuit": circuit.to_dict()})
    assert story(fleet, row) == Story.model_validate(found.to_dict())


def test_a_circuit_is_found_and_every_path_removed(run: Run, emerged: CircuitRow) -> None:
    assert again(emerged) == emerged
    best = RunStudy(run).best_late_checkpoint()
    circuit = discover(best.model, EXPERIMENT.task, force=True)
    assert Circuit.model_validate(emerged.circuit) == circuit
    assert emerged.step == best.step
    for name in ("model", "prescribed", "computed", "ablated"):
        assert getattr(emerged, name) == pytest.approx(circuit.losses.mean(name), abs=1e-5)
    assert emerged.sufficient
    assert emerged.useful == ((0, 0), (1, 0))  # an induction circuit
    assert emerged.needed == tuple(sorted({at for each in circuit.components for at in each.at}))
    rows = [row for each in circuit.components if each.paths for row in each.rows]
    assert [removal.head for removal in emerged.removals] == sorted(head for head, _ in rows)
    first, *_, last = emerged.removals
    assert (first.what, first.joins_pair) == ("key 0 → value 0", True)
    assert (last.what, last.joins_pair) == ("value 0 → query", False)
    uniform = {each.head: each.loss for each in emerged.whole or ()}
    assert tuple(uniform) == emerged.useful
    assert uniform[1, 0] == pytest.approx(last.prescribed, rel=0.2)  # its only path is all it does
    assert emerged.shared == ()
    lost = {each.at: each.lost.mean for each in circuit.components if each.paths and each.lost}
    for removal in emerged.removals:  # measured on other examples
        expected = emerged.prescribed + lost[(removal.head,)] * circuit.losses.gap
        assert removal.prescribed == pytest.approx(expected, rel=0.2)
    ablator = Ablator(best.model, exam_of(EXPERIMENT.task, FRESH_EXAMPLES, seed=2))
    query = ablator.losses([Ablation.of(changes_of(["1.0:query=uniform"]))])
    assert last.alone == pytest.approx(float(query.mean()), abs=1e-5)
    maps = emerged.maps
    count = len(maps.roles)
    assert np.shape(maps.own) == np.shape(maps.others) == (2, 1, count, count)
    value, key = maps.roles.index("value 0"), maps.roles.index("key 0")
    assert maps.own[0][0][value][key] > 0.5


def test_a_step_that_twins_take_is_removed_with_both() -> None:
    grown = planted(Retrieval(hops=2, chains=2, dim=8, symbols="one-hot"), twins=True)
    circuit = discover(grown.model, grown.task)
    ablator = on_fresh_examples(grown.model, grown.task, circuit)
    alone = {each.what: each.prescribed for each in removals(ablator, circuit)}
    steps = without_steps(ablator, circuit)
    assert {step.what for step in steps} == set(alone) != set()
    for step in steps:
        layer, _ = step.heads[0]
        assert step.heads == ((layer, 0), (layer, 1))
        if step.what.endswith("query"):  # the others only route
            assert step.loss > 3 * alone[step.what] > 0


def test_paths_are_followed_through_the_checkpoints(run: Run, emerged: CircuitRow) -> None:
    followed = emerged.emergence
    assert followed.steps == tuple(run.checkpoints)
    assert followed.steps_per_epoch == 2**12 / 32
    attention = [path.attention for path in followed.paths]
    assert np.shape(attention) == (len(followed.paths), len(run.checkpoints))
    assert all(values[-1] > 0.5 > values[0] for values in attention)
    assert all(0 < (path.emerged_at_step or 0) < 250 for path in followed.paths)


def test_who_learned_nothing_has_a_row_without_a_story(tmp_path: Path) -> None:
    run = train(changed(steps=4), tmp_path)
    row = emergence_row(run)
    assert again(row) == row
    assert row.crossed == (None,)
    assert (row.useful, row.removals, row.shared, row.whole) == ((), (), (), ())
    assert row.emergence is None


def test_a_row_is_of_the_checkpoint_after_the_first_hop(tmp_path: Path) -> None:
    run = train(changed((0, 4), steps=200), tmp_path)
    for row in place_rows(run):
        (when,) = row.crossed
        assert row.step - 25 < when <= row.step
        assert (row.position, row.base, row.order) == ("pair", 10, "backward")
        assert row.own == losses(RunStudy(run, row.seed, row.step).model, EXPERIMENT.task)
        assert row.own != losses(RunStudy(run, row.seed, 200).model, EXPERIMENT.task)
        assert row.shuffled == row.own  # with one hop there is nothing to be shuffled


def test_of_a_model_that_learned_nothing_nothing_is_measured(tmp_path: Path) -> None:
    run = train(changed((0, 4), steps=25), tmp_path)
    assert [(row.step, row.own, row.shuffled) for row in place_rows(run)] == [(None, (), ())] * 2


def test_a_checkpoint_is_not_before_what_it_is_to_show() -> None:
    for when, step in ((None, None), (40, 50), (50, 50), (51, None)):
        assert after([0, 25, 50], when) == step


@torch.no_grad()
def test_losses_are_those_of_the_model_on_fresh_examples() -> None:
    study = load("gallery/demo")
    for order in ("backward", "shuffled"):
        task = study.task.model_copy(update={"order": order})
        batch = dataset(task, 2, EXAMPLES, "validation")
        expected = hop_losses(task, study.model(batch.inputs), batch)
        found = losses(study.model, task)
        assert found == pytest.approx(expected.tolist(), abs=1e-4)
        assert (found[1] < 0.1) == (order == "backward")  # facts are found by their places


LEARNING_ON = Experiment(
    task=Retrieval(hops=2, chains=2, position="pair", base=10, dim=8),
    model=Model(layers=3, heads=2, d_model=32, init="fan-in"),
    training=Training(
        steps=400, batch=32, examples=2**12, lr=4e-3, schedule="cosine", warmup=20,
        validate_every=50, checkpoint_every=25, validation_examples=64, precision="float32",
    ),
    seeds=(0, 4),
)  # fmt: skip


@pytest.fixture(scope="module")
def young(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A fleet of two that knows nothing yet."""
    training = LEARNING_ON.training.model_copy(update={"steps": 50})
    recipe = LEARNING_ON.model_copy(update={"training": training})
    return train(recipe, tmp_path_factory.mktemp("runs"))


def test_a_model_learns_on_in_both_orders_from_where_it_knew_the_first_hop() -> None:
    run = load("gallery/demo").run
    ordered, shuffled = changed_rows(run, CHECK_EVERY)
    ((first, _),) = run.learned()
    assert first == 404
    model = load("gallery/demo", step=500).model
    for row, order in ((ordered, "backward"), (shuffled, "shuffled")):
        assert (row.changed, row.order, row.position, row.base) == (order, "backward", "pair", 10)
        assert (row.seed, row.step, row.steps) == (0, 500, CHECK_EVERY)
        assert row.precision == run.folder.manifest.precision == "bf16"
        expected = losses(model, run.recipe.task.ordered(row.changed))  # type: ignore[arg-type]
        assert row.start == pytest.approx(expected, abs=0.1)  # on other fresh examples
        assert row.second is None
    assert ordered.start[0] < 0.2 < 0.6 < shuffled.start[0]
    assert ordered.first == 10  # it knew it, and the rule takes the mean of ten steps
    assert shuffled.first is None or shuffled.first > 10


def test_of_models_that_know_nothing_there_are_no_rows(young: Run) -> None:
    assert changed_rows(young) == []


def trainer(seeds: tuple[int, ...]) -> Trainer:
    recipe = LEARNING_ON.model_copy(update={"seeds": seeds})
    return Trainer(recipe, torch.device("cpu"), "float32")


def weights(run: Run, seed: int, step: int) -> dict[str, Tensor]:
    return RunStudy(run, seed, step).model.state_dict()


def test_a_fleet_learns_on_as_each_of_its_models_alone(young: Run) -> None:
    fleet, alone = trainer((0, 4)), trainer((4,))
    start_again(fleet, [weights(young, 0, 50), weights(young, 4, 25)])
    start_again(alone, [weights(young, 4, 25)])
    for _ in range(3):
        torch.testing.assert_close(fleet.advance()[1:], alone.advance(), atol=1e-4, rtol=1e-3)


def test_it_begins_as_a_new_training_of_these_weights(young: Run) -> None:
    """After other steps: nothing of them is left in the optimiser."""
    used, new = trainer((0,)), trainer((0,))
    for _ in range(3):
        used.advance()
    new.weights.load(weights(young, 0, 50))
    start_again(used, [weights(young, 0, 50)])
    for _ in range(3):
        assert torch.equal(used.advance(), new.advance())


@pytest.mark.slow
def test_hops_are_learned_by_the_same_rule_as_in_a_training() -> None:
    found = trainer((0, 4))
    when = first_two(found, STEPS)
    again = trainer((0, 4))
    train_losses, validation = [], []
    for step in range(1, found.step + 1):
        train_losses.append(again.advance().numpy())
        if step % CHECK_EVERY == 0:
            validation.append(again.validate().numpy())
    level = learned_below(LEARNING_ON.chance)
    taken = np.arange(1, found.step + 1)
    for member in range(2):
        own, checked = (np.stack(each)[:, member] for each in (train_losses, validation))
        assert when[member] == learned(taken, own, checked, level)
    assert found.step == STEPS or all(hop is not None for hops in when for hop in hops)


QUICK = ("musat/fig4-ic", "musat/places", "musat/places-changed")
CIRCUITS = [pytest.param(name, marks=pytest.mark.slow) for name in ("musat/fig5", "musat/fig7")]


@pytest.mark.parametrize("name", [*QUICK, *CIRCUITS])
def test_rows_are_of_the_kinds_that_the_target_names(name: str) -> None:
    target = next(each for each in TARGETS if each.name == name)
    rows = target.measure(find("demo"), "smoke")
    assert rows
    assert {type(row) for row in rows} <= set(target.rows)


def test_less_is_trained_on_for_a_trial() -> None:
    assert {row.steps for row in measuring.changed(find("demo"), "smoke")} == {25}


class Guesser:
    """Says the first value it reads, and of functions nothing at all."""

    name = "guesser"

    def complete(
        self,
        prompts: Sequence[str],
        temperature: float,
        seeds: Sequence[int],
        openings: Sequence[str] = (),
    ) -> list[str]:
        return ["" if "(" in each else each.splitlines()[0].split()[-1] for each in prompts]


def test_a_row_for_each_model_and_kind_of_question(tmp_path: Path) -> None:
    kinds = (Prompts(formulation="equations", hops=2, opening=True), Prompts(formulation="f4"))
    asking = Asking(protocol="greedy", template="raw")
    benches = [
        LlmBench(model=model, prompts=kinds, questions=30, asking=asking)
        for model in ("small", "large")
    ]
    folders = [ask(bench, Guesser, tmp_path) for bench in benches]
    rows = [row for folder in folders for row in answer_rows(folder)]
    assert [read_row((AnswerRow,), json.loads(row.to_json())) for row in rows] == rows
    assert [(row.model, row.kind) for row in rows] == [
        (model, kind)
        for model in ("small", "large")
        for kind in ("equations-d2-opened", "functions")
    ]
    assert [row.run for row in rows] == [folder.name for folder in folders for _ in kinds]
    for row, result in zip(rows, [each for f in folders for each in results(f)], strict=True):
        assert (row.protocol, row.precision, row.count) == ("greedy", "float32", 30)
        for name in ("hops", "accuracy", "interval", "best", "guessing", "first", "acceptance"):
            assert getattr(row, name) == getattr(result, name)
    assert 0 < rows[0].accuracy < 1
    assert rows[0].tries == results(folders[0])[0].tries
    assert rows[1].tries is None  # no sample was acceptable


def test_layers_are_counted_in_two_ways_and_proved_by_weights_written_by_hand() -> None:
    rows = depth_rows("smoke")
    assert [read_row((DepthRow, PlantedRow), json.loads(row.to_json())) for row in rows] == rows
    counted = [row for row in rows if isinstance(row, DepthRow)]
    assert [row.hops for row in counted] == list(range(1, 9))
    for row in counted:
        assert row.simulated == Layers(bidirectional=row.bidirectional, causal=row.causal)
        bound = row.theorem_1
        assert 3 ** (bound - 1) < 2 * row.hops <= 3**bound  # the least t ≥ log3(2D)
        assert bound <= row.bidirectional <= row.causal
    causal = {row.hops: row.causal for row in counted}
    planted = [row for row in rows if isinstance(row, PlantedRow)]
    assert tuple(row.planted for row in planted) == PLANTED
    for one in planted:
        assert (one.layers, one.heads) == (causal[one.planted], 1)
        assert 0 <= one.error < 1e-6


def test_a_model_counts_once_though_one_row_does_not_name_its_initial_weights() -> None:
    unnamed = musat_rows.loss_row(3, [0.1, 0.2, 0.6]).model_copy(update={"init": None})
    assert unnamed.loss == pytest.approx(0.3)  # the mean over hops
    longer = unnamed.model_copy(update={"init": "gpt2", "steps": unnamed.steps + 1})
    other = unnamed.model_copy(update={"init": "fan-in"})
    assert longest([unnamed, longer, other]) == [longer, other]


def test_only_what_earlier_tables_did_not_record_may_be_missing() -> None:
    kept = musat_rows.loss_row(3, [0.1]).model_dump(mode="json")
    del kept["init"]
    assert read_row((LossRow,), kept).model_dump()["init"] is None
    for name in ("final", "crossed", "course"):
        with pytest.raises(ResultsError, match=name):
            read_row((LossRow,), {key: its for key, its in kept.items() if key != name})
    story = {"steps": [0], "steps_per_epoch": None, "guess": 0.75, "losses": [[0.7]], "paths": []}
    assert Story.model_validate(story).learned_at is None
    assert Story.model_validate({**story, "learned_at": [4, None]}).learned_at == (4, None)
