"""Rows of Musat, of what is computed or asked and of transformers that were trained for seconds."""

import json
from dataclasses import replace
from pathlib import Path

import musat_rows
import numpy as np
import pytest
from solving import ask

from hopscope.circuits import Ablation, Ablator, Circuit, adapter_of, discover, examples_of
from hopscope.circuits.ablation import changes_of
from hopscope.circuits.tracking import emergence
from hopscope.configs import Asking, Experiment, LmBench, Model, Prompts, Retrieval, Training
from hopscope.lm.prompts import Question
from hopscope.lm.results import results
from hopscope.milestones import WINDOW, first_below, learned_below
from hopscope.models.planted import planted
from hopscope.papers.musat.measure_answers import answer_rows
from hopscope.papers.musat.measure_depth import PLANTED, depth_rows
from hopscope.papers.musat.measure_runs import (
    FRESH_EXAMPLES,
    circuit_row,
    emergence_of,
    emergence_rows,
    final_loss_rows,
    on_fresh_examples,
    without_rows,
    without_steps,
)
from hopscope.papers.musat.rows import (
    AnswerRow,
    CircuitRow,
    DepthRow,
    Layers,
    PlantedRow,
    longest,
)
from hopscope.papers.row import ResultRow, read_row
from hopscope.runs import opened
from hopscope.store import Store
from hopscope.study import RunStudy
from hopscope.training import Run, train

EXPERIMENT = Experiment(
    task=Retrieval(hops=1, chains=2, position="pair", base=10, dim=8),
    model=Model(layers=2, heads=1, d_model=32, init="fan-in"),
    training=Training(
        steps=250, batch=32, examples=2**12, lr=4e-3, validate_every=20, checkpoint_every=25,
        checkpoint_at=(245,), validation_examples=64, precision="float32",
    ),
)  # fmt: skip
"""Learns induction with two heads."""


def again(row: ResultRow) -> ResultRow:
    """The row as it comes back from a file."""
    return read_row((type(row),), json.loads(row.to_json()))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(EXPERIMENT, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def emerged(run: Run) -> CircuitRow:
    """Its row with everything in it."""
    return emergence_rows(run)[0]


def test_rows_of_losses_are_those_of_the_run(run: Run) -> None:
    (row,) = final_loss_rows(run)
    assert again(row) == row
    about = ("seed", "hops", "curriculum", "layers", "heads", "steps", "batch", "examples")
    assert [getattr(row, name) for name in about] == [0, 1, True, 2, 1, 250, 32, 4096]
    assert row.seconds == run.folder.manifest.seconds > 0
    assert row.precision == run.folder.manifest.precision == "float32"
    assert row.final == pytest.approx(run.final_losses()[0], abs=1e-5)
    steps, losses = run.losses()
    assert row.chance == 0.5  # of two chains
    level = learned_below([row.chance])
    assert row.learned_at == tuple(first_below(steps, losses[:, 0], level))
    assert row.learned_at != (None,)
    assert max(row.final) < row.chance
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
    fleet = train(changed((3, 1), steps=20, checkpoint_every=10, checkpoint_at=()), store)
    assert [row.seed for row in final_loss_rows(fleet)] == [3, 1]
    row = circuit_row(fleet)
    assert (row.seed, row.step) == (3, RunStudy(fleet).best_late_checkpoint().step)
    digest = adapter_of(fleet.model.member(0)).digest()
    circuit = Circuit.model_validate({**emerged.circuit, "model": digest})
    found = replace(emergence(fleet, circuit, member=0), steps_per_epoch=128.0)
    assert emergence_of(fleet, circuit).to_dict() == found.to_dict()


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
    ablator = Ablator(best.model, examples_of(EXPERIMENT.task, FRESH_EXAMPLES, 1, "measurement"))
    query = ablator.losses([Ablation.of(changes_of(["1.0:query=uniform"]))])
    assert last.alone == pytest.approx(float(query.mean()), abs=1e-5)
    maps = emerged.role_maps
    count = len(maps.roles)
    assert maps.own.shape == maps.others.shape == (2, 1, count, count)
    assert maps.between("value 0", "key 0")[0, 0] > 0.5


def test_a_step_that_twins_take_is_removed_with_both() -> None:
    grown = planted(Retrieval(hops=2, chains=2, dim=8, symbols="one-hot"), twins=True)
    circuit = discover(grown.model, grown.task, examples=16)
    ablator = on_fresh_examples(grown.model, grown.task, circuit)
    alone = {each.what: each.prescribed for each in without_rows(ablator, circuit)}
    steps = without_steps(ablator, circuit)
    assert {step.what for step in steps} == set(alone) != set()
    for step in steps:
        layer, _ = step.heads[0]
        assert step.heads == ((layer, 0), (layer, 1))
        if step.what.endswith("query"):  # the others only route
            assert step.loss > 3 * alone[step.what] > 0


def test_paths_are_followed_through_the_checkpoints(run: Run, emerged: CircuitRow) -> None:
    followed = emerged.story
    assert followed.steps == tuple(run.checkpoints)
    assert followed.steps_per_epoch == 2**12 / 32
    assert followed.attention.shape == (len(followed.paths), len(run.checkpoints))
    assert all(values[-1] > 0.5 > values[0] for values in followed.attention)
    assert all(0 < (step or 0) < 250 for _, step in followed.order)


def test_who_learned_nothing_has_a_row_without_a_story(tmp_path: Path) -> None:
    run = train(changed(steps=4, checkpoint_at=()), tmp_path)
    (row,) = emergence_rows(run)
    assert again(row) == row
    assert row.learned_at == (None,)
    assert (row.useful, row.removals, row.shared, row.whole) == ((), (), (), ())
    assert row.emergence is None


class Guesser:
    """Says the first value it reads, and of functions nothing at all."""

    name = "guesser"

    def answer(self, question: Question, temperature: float, seed: int) -> str:
        return "" if "(" in question.prompt else question.prompt.splitlines()[0].split()[-1]


def test_a_row_for_each_model_and_kind_of_question(tmp_path: Path) -> None:
    kinds = (Prompts(formulation="equations", hops=2, opening=True), Prompts(formulation="f4"))
    protocols = ("greedy", "paper")
    asked = [Asking(protocol=protocol, template="raw") for protocol in protocols]
    benches = [
        LmBench(model=model, prompts=kinds, questions=30, asking=asking)
        for model, asking in zip(("small", "large"), asked, strict=True)
    ]
    folders = [ask(bench, Guesser, tmp_path) for bench in benches]
    rows = [row for folder in folders for row in answer_rows(opened(folder))]
    assert [read_row((AnswerRow,), json.loads(row.to_json())) for row in rows] == rows
    assert [(row.model, row.kind) for row in rows] == [
        (model, kind)
        for model in ("small", "large")
        for kind in ("equations-d2-opened", "functions")
    ]
    assert [row.run for row in rows] == [folder.name for folder in folders for _ in kinds]
    for row, result in zip(rows, [each for f in folders for each in results(f)], strict=True):
        assert (row.dtype, row.count) == ("float32", 30)
        for name in ("hops", "accuracy", "interval", "best", "chance", "first", "acceptance"):
            assert getattr(row, name) == getattr(result, name)
    assert [row.protocol for row in rows] == [each for each in protocols for _ in kinds]
    assert 0 < rows[0].accuracy < 1
    assert rows[3].accuracy is None
    assert rows[0].tries == results(folders[0])[0].tries
    assert rows[1].tries is None  # no sample was acceptable


def test_layers_are_counted_in_two_ways_and_proved_by_weights_written_by_hand() -> None:
    rows = depth_rows(8)
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


def test_a_model_of_two_lengths_counts_once_as_the_longer() -> None:
    short = musat_rows.loss_row(3, [0.1, 0.2, 0.6])
    assert short.loss == pytest.approx(0.3)  # the mean over hops
    longer = short.model_copy(update={"steps": short.steps + 1})
    other = short.model_copy(update={"init": "fan-in"})
    assert longest([short, longer, other]) == [longer, other]
