"""What is left of a sweep, and how far it is."""

import pytest
from waiting import stopped

from hopscope.configs import Experiment, NgramExperiment
from hopscope.runs import train
from hopscope.store import Store
from hopscope.workers import Job, Report
from hopscope.workers.fleets import together
from hopscope.workers.job import do
from hopscope.workers.progress import Plan, SweepProgress, committed_steps, plans

Recipes = tuple[Experiment, ...]


def counts(row: Plan) -> tuple[int, int, int, int]:
    return row.complete, row.begun, row.damaged, row.missing


def test_what_is_left_is_counted_and_packed(members: Recipes, store: Store) -> None:
    train(members[0], store, "cpu", threads=1)
    stopped(Job.of(members[1:2], store, "cpu", 1))
    (store.create(members[2]).path / "manifest.json").write_text("{}")
    row, other = plans([*members, NgramExperiment()], store, 2)
    assert (counts(row), row.runs) == ((1, 1, 1, 3), 6)
    assert row.jobs == (1, 1, 1, 2)  # begun or damaged: alone
    spent = sum(store.create(recipe).manifest.seconds for recipe in members[:2])
    assert row.seconds == pytest.approx(spent / 13 * (6 * 12 - 13))
    assert row.settings == other.settings == {}  # their titles differ
    training = members[0].training.model_copy(update={"lr": 0.5})
    slow = members[1].model_copy(update={"training": training})
    first, second = plans([members[0], slow], store, 2)
    lr = members[0].training.lr
    assert (first.settings, second.settings) == ({"training.lr": lr}, {"training.lr": 0.5})
    assert (counts(other), other.jobs, other.seconds) == ((0, 0, 0, 1), (1,), None)


def test_what_is_no_run_of_a_recipe_is_missing_or_damaged(members: Recipes, store: Store) -> None:
    (store.create(members[0]).path / "manifest.json").unlink()
    store.create(members[1]).path.rename(store.root / members[2].run_name())
    (row,) = plans(members[:3], store, 1)
    assert counts(row) == (0, 0, 2, 1)
    process, model = {"parents": tuple(range(1, 121)), "length": 200}, {"window": 120}
    long = NgramExperiment.model_validate({"process": process, "model": model})
    assert len(long.run_name()) > 255  # no folder can be called so
    (row,) = plans([long], store, 1)
    assert counts(row) == (0, 0, 0, 1)


def test_a_fleet_that_was_begun_is_planned_as_it_is(members: Recipes, store: Store) -> None:
    stopped(Job.of(members[:4], store, "cpu", 1))
    fleet = store.create(together(members[:4]))
    (row,) = plans(members, store, 1)
    assert (counts(row), row.jobs) == ((0, 4, 0, 2), (4, 1, 1))
    assert row.seconds == pytest.approx(fleet.manifest.seconds / 4 * (6 * 12 - 4))
    (half,) = plans(members[:2], store, 1)  # the fleet goes on with all four
    assert (counts(half), half.jobs) == ((0, 2, 0, 0), (4,))
    assert half.seconds == pytest.approx(fleet.manifest.seconds / 4 * 4 * 11)
    store.create(members[0]).commit({}, step=12, complete=True)  # the split began
    (row,) = plans(members, store, 1)
    assert (counts(row), row.jobs) == ((1, 3, 0, 2), (4, 1, 1))
    assert row.seconds == pytest.approx(fleet.manifest.seconds / 16 * (6 * 12 - 12 - 3))


def test_steps_of_all_models_are_counted(members: Recipes, store: Store) -> None:
    now = [100.0]
    jobs = [Job.of(members[:2], store, "cpu", 1), Job.of((members[2],), store, "cpu", 1)]
    progress = SweepProgress(jobs, clock=lambda: now[0])
    assert (progress.runs, progress.all_steps, progress.steps()) == (3, 36, 0)
    assert progress.seconds_left(0) is None
    stopped(Job.of(members[:2], store, "cpu", 1))
    assert committed_steps(jobs[0]) == 2  # a fleet of two, stopped at step 1
    train(members[2], store, "cpu")
    assert progress.steps() == 14
    assert progress.seconds_left(14) is None  # this commit may have come a moment after the start
    now[0] += 8
    assert progress.seconds_left(18) == 18 * 8 / 4
    now[0] += 6
    assert progress.seconds_left(18) == 30
    do(jobs[0])
    assert (committed_steps(jobs[0]), progress.steps(), progress.seconds_left(36)) == (24, 36, 0.0)
    progress.reports["a"] = Report.of("a")
    assert (progress.count("complete"), progress.count("failed")) == (1, 0)
