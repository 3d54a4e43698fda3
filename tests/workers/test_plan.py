"""What is left of a sweep, and how it would be packed: without training anything."""

from pathlib import Path

import pytest

from hopscope.configs import Experiment, MarkovExperiment
from hopscope.runs import Stop, train
from hopscope.store import Store
from hopscope.workers import Here, Job, Processes, done, plan, processes
from hopscope.workers.packing import member
from hopscope.workers.plan import Planned
from hopscope.workers.sizing import Measured

FLAT = Measured(seconds={1: 1.0, 2: 1.0, 4: 1.0}, memory={1: 1, 2: 1, 4: 1}, room=100)


@pytest.fixture
def recipes(tiny: Experiment) -> list[Experiment]:
    return [member(tiny, seed) for seed in range(6)]


def counts(row: Planned) -> tuple[int, int, int, int]:
    return row.complete, row.begun, row.damaged, row.missing


def test_what_is_left_is_counted_and_packed(recipes: list[Experiment], store: Store) -> None:
    train(recipes[0], store, "cpu", threads=1)
    stop = Stop()
    stop.ask("a friend")
    done(Job.of((recipes[1],), store, "cpu", 1), stop=stop)  # ends at step 1 of 12
    (store.create(recipes[2]).path / "manifest.json").write_text("{}")
    row, other = plan.plan([*recipes, MarkovExperiment()], store, Here(2), "cpu")
    assert (counts(row), row.runs) == ((1, 1, 1, 3), 6)
    assert row.jobs == (1, 1, 1, 2)  # begun or damaged: alone
    assert row.seconds is not None
    spent = sum(store.create(recipe).manifest.seconds for recipe in recipes[:2])
    assert row.seconds == pytest.approx(spent / 13 * (6 * 12 - 13))
    assert (counts(other), other.jobs, other.seconds) == ((0, 0, 0, 1), (1,), None)


def test_a_name_too_long_for_a_folder_is_missing(store: Store) -> None:
    process, model = {"parents": tuple(range(1, 121)), "length": 200}, {"window": 120}
    long = MarkovExperiment.model_validate({"process": process, "model": model})
    assert len(long.run_name()) > 255
    (row,) = plan.plan([long], store, Here(), "cpu")
    assert counts(row) == (0, 0, 0, 1)


def test_a_folder_without_a_manifest_and_one_of_another_run_are_damaged(
    recipes: list[Experiment], store: Store
) -> None:
    (store.create(recipes[0]).path / "manifest.json").unlink()
    store.create(recipes[1]).path.rename(store.root / recipes[2].run_name())
    (row,) = plan.plan(recipes[:3], store, Here(), "cpu")
    assert counts(row) == (0, 0, 2, 1)


def test_a_fleet_that_was_begun_is_planned_as_it_is(
    recipes: list[Experiment], store: Store
) -> None:
    stop = Stop()
    stop.ask("a friend")
    done(Job.of(tuple(recipes[:4]), store, "cpu", 1), stop=stop)
    (row,) = plan.plan(recipes, store, Here(), "cpu")
    assert row.jobs == (4, 1, 1)


def test_without_a_measurement_nothing_is_said_of_sizes(
    recipes: list[Experiment], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(processes, "cores", lambda: 4)
    (row,) = plan.plan(recipes, store, Processes(2), "cpu")
    assert (row.jobs, row.to_dict()["jobs"], row.to_dict()["hours"]) == (None, None, None)
    monkeypatch.setattr(plan, "remembered", lambda *_: FLAT)
    (row,) = plan.plan(recipes, store, Processes(2), "cpu")
    assert row.jobs == (3, 3)
    assert store.names() == []
