"""Rows of trained transformers, from a run of seconds."""

import json
from pathlib import Path

import numpy as np
import pytest

from hopscope.circuits import Circuit, discover, subject_of
from hopscope.circuits.tracking import emergence
from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.milestones import WINDOW, first_below, learned_below
from hopscope.papers.musat.measure_runs import (
    POINTS,
    circuit_row,
    emergence_row,
    loss_rows,
    spread,
    story,
)
from hopscope.papers.musat.rows import CircuitRow, Story
from hopscope.papers.row import Row, read_row
from hopscope.store import Store
from hopscope.study import Study
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
    assert row.course.train is not None
    (train,) = row.course.train
    assert train[0] == pytest.approx(losses[0, 0, 0], abs=1e-5)
    before = [
        losses[(steps > step - WINDOW) & (steps <= step), 0, 0].mean()
        for step in row.course.steps[1:]
    ]
    assert train[1:] == pytest.approx(before, abs=1e-5)


def test_steps_are_spread_evenly() -> None:
    few = np.array([0, 5, 9])
    assert spread(few).tolist() == [0, 1, 2]
    dense = np.array([*range(0, 3_900, 100), *range(3_901, 4_001)])
    kept = dense[spread(dense)]
    assert (kept[0], kept[-1]) == (0, 4_000)
    assert len(kept) <= POINTS
    assert set(np.diff(kept[kept < 3_900])) == {100}


def changed(seeds: tuple[int, ...] = (0,), **training: object) -> Experiment:
    """The experiment, trained differently."""
    other = EXPERIMENT.training.model_copy(update=training)
    return EXPERIMENT.model_copy(update={"training": other, "seeds": seeds})


def test_of_a_fleet_the_first_is_examined(store: Store) -> None:
    fleet = train(changed((1, 2), steps=20, checkpoint_every=10), store)
    assert [row.seed for row in loss_rows(fleet)] == [1, 2]
    row = circuit_row(fleet)
    assert (row.seed, row.step) == (1, Study(fleet).calmest().step)


def test_a_circuit_of_a_fleet_is_followed_in_its_first(store: Store, emerged: CircuitRow) -> None:
    fleet = train(changed((3, 1), steps=4), store)
    digest = subject_of(fleet.model.member(0)).digest()
    circuit = Circuit.model_validate({**emerged.circuit, "model": digest})
    found = emergence(fleet, circuit, member=0, steps_per_epoch=128.0)
    row = emerged.model_copy(update={"circuit": circuit.to_dict()})
    assert story(fleet, row) == Story.model_validate(found.to_dict())


def test_a_circuit_is_found_and_every_path_removed(run: Run, emerged: CircuitRow) -> None:
    assert again(emerged) == emerged
    calm = Study(run).calmest()
    circuit = discover(calm.model, EXPERIMENT.task, force=True)
    assert Circuit.model_validate(emerged.circuit) == circuit
    assert emerged.step == calm.step
    for name in ("clean", "ideal", "ablated"):
        assert getattr(emerged, name) == pytest.approx(circuit.losses.mean(name), abs=1e-5)
    assert emerged.solved
    assert emerged.useful == ((0, 0), (1, 0))  # an induction circuit
    assert emerged.needed == tuple(sorted({part.at for part in circuit.parts}))
    parts = [part for part in circuit.parts if part.paths]
    assert [removal.head for removal in emerged.removals] == [p.at for p in parts]
    first, *_, last = emerged.removals
    assert (first.what, first.joins_pair) == ("value 0 ← key 0", True)
    assert (last.what, last.joins_pair) == ("query ← value 0", False)
    assert last.ideal > 2 * emerged.ideal
    uniform = {each.head: each.loss for each in emerged.whole or ()}
    assert tuple(uniform) == emerged.useful
    assert uniform[1, 0] == pytest.approx(last.ideal, rel=0.2)  # its only path is all it does
    maps = emerged.maps
    count = len(maps.roles)
    assert np.shape(maps.own) == np.shape(maps.others) == (2, 1, count, count)
    value, key = maps.roles.index("value 0"), maps.roles.index("key 0")
    assert maps.own[0][0][value][key] > 0.5


def test_paths_are_followed_through_the_checkpoints(run: Run, emerged: CircuitRow) -> None:
    followed = emerged.emergence
    assert followed is not None
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
    assert (row.useful, row.removals, row.needed, row.whole) == ((), (), (), ())
    assert row.emergence is None
