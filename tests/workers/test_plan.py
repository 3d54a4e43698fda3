"""What is left of a sweep, how far it is, and how large fleets should be."""

from pathlib import Path

import pytest
import torch

from hopscope.configs import Experiment, MarkovExperiment
from hopscope.errors import ConfigError
from hopscope.runs import Stop, train
from hopscope.store import Store
from hopscope.workers import Here, Job, Processes, done, plan, processes, sizing
from hopscope.workers.carry import sizes as fleet_sizes
from hopscope.workers.job import report_of
from hopscope.workers.packing import member
from hopscope.workers.plan import Planned
from hopscope.workers.progress import Progress, steps_of
from hopscope.workers.sizing import Measured, best_size, measure, measured, sizes

GIB = 2**30
FLAT = Measured(seconds={1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0},
                memory={1: GIB, 2: GIB, 4: 2 * GIB, 8: 4 * GIB}, room=20 * GIB)  # fmt: skip
STEEP = Measured(seconds={1: 1.0, 2: 2.5}, memory={1: GIB, 2: GIB}, room=20 * GIB)


@pytest.fixture
def recipes(tiny: Experiment) -> list[Experiment]:
    return [member(tiny, seed) for seed in range(6)]


def begun(recipes: list[Experiment], store: Store) -> Job:
    """A job that somebody stopped at step 1 of 12."""
    stop, job = Stop(), Job.of(tuple(recipes), store, "cpu", 1)
    stop.ask("a friend")
    done(job, stop=stop)
    return job


def counts(row: Planned) -> tuple[int, int, int, int]:
    return row.complete, row.begun, row.damaged, row.missing


def test_what_is_left_is_counted_and_packed(recipes: list[Experiment], store: Store) -> None:
    train(recipes[0], store, "cpu", threads=1)
    begun(recipes[1:2], store)
    (store.create(recipes[2]).path / "manifest.json").write_text("{}")
    row, other = plan.plan([*recipes, MarkovExperiment()], store, Here(2), "cpu")
    assert (counts(row), row.runs) == ((1, 1, 1, 3), 6)
    assert row.jobs == (1, 1, 1, 2)  # begun or damaged: alone
    spent = sum(store.create(recipe).manifest.seconds for recipe in recipes[:2])
    assert row.seconds == pytest.approx(spent / 13 * (6 * 12 - 13))
    assert (counts(other), other.jobs, other.seconds) == ((0, 0, 0, 1), (1,), None)


def test_what_is_no_run_of_a_recipe_is_missing_or_damaged(
    recipes: list[Experiment], store: Store
) -> None:
    (store.create(recipes[0]).path / "manifest.json").unlink()
    store.create(recipes[1]).path.rename(store.root / recipes[2].run_name())
    (row,) = plan.plan(recipes[:3], store, Here(), "cpu")
    assert counts(row) == (0, 0, 2, 1)
    process, model = {"parents": tuple(range(1, 121)), "length": 200}, {"window": 120}
    long = MarkovExperiment.model_validate({"process": process, "model": model})
    assert len(long.run_name()) > 255  # no folder can be called so
    (row,) = plan.plan([long], store, Here(), "cpu")
    assert counts(row) == (0, 0, 0, 1)


def test_a_fleet_that_was_begun_is_planned_as_it_is(
    recipes: list[Experiment], store: Store
) -> None:
    begun(recipes[:4], store)
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


def test_steps_of_all_models_are_counted(recipes: list[Experiment], store: Store) -> None:
    now = [100.0]
    jobs = [Job.of(tuple(recipes[:2]), store, "cpu", 1), Job.of((recipes[2],), store, "cpu", 1)]
    progress = Progress(jobs, clock=lambda: now[0])
    assert (progress.runs, progress.all_steps, progress.steps()) == (3, 36, 0)
    assert progress.seconds_left(0) is None
    begun(recipes[:2], store)
    assert steps_of(jobs[0]) == 2  # a fleet of two, stopped at step 1
    train(recipes[2], store, "cpu")
    now[0] += 7
    assert progress.steps() == 14
    assert progress.seconds_left(14) == 22 * 7 / 14
    done(jobs[0])
    assert (steps_of(jobs[0]), progress.steps(), progress.seconds_left(36)) == (24, 36, 0.0)
    progress.reports["a"] = report_of("a", 1.0, None)
    assert (progress.count("complete"), progress.count("failed")) == (1, 0)


def test_the_size_with_which_all_are_ready_soonest() -> None:
    """By a rule that was worked out by hand, on numbers that were measured."""
    assert [sizes(most) for most in (1, 6, 8)] == [[1], [1, 2, 4, 6], [1, 2, 4, 8]]
    line = Measured(seconds={4: 2.0, 8: 4.0}, memory={}, room=1)
    assert (STEEP.of(2), line.of(5)) == (2.5, 2.5)  # between two sizes a line is drawn
    four = FLAT.model_copy(update={"room": 4 * GIB})
    for found, count, slots, expected in (
        (FLAT, 8, 1, 8),  # a fleet costs what one model costs
        (FLAT, 8, 2, 4),  # two workers, two fleets
        (FLAT, 9, 2, 5),
        (FLAT, 64, 2, 8),
        (STEEP, 8, 2, 1),  # two as one are slower than two
        (FLAT.model_copy(update={"room": 5 * GIB}), 8, 1, 8),  # 0.8 × 5 GiB are enough
        (four, 8, 1, 4),
        (four, 8, 2, 2),  # beside another
        (four.model_copy(update={"gpus": 2}), 8, 2, 4),  # each on its own GPU
        (FLAT.model_copy(update={"room": GIB // 2}), 8, 1, 1),
    ):
        assert best_size(found, count, slots) == expected, (found, count, slots)


def test_what_was_measured_is_remembered(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path))
    asked: list[object] = []
    monkeypatch.setattr(sizing, "_measured_elsewhere", lambda it: asked.append(it) or FLAT)
    for recipe, threads, times in (
        (tiny, 1, 1),
        (member(tiny, 9), 1, 1),
        (tiny, 2, 2),  # other threads, another answer
    ):
        assert measured(recipe, 8, "cpu", threads) == FLAT
        assert len(asked) == times
    for file in (tmp_path / "fleets").iterdir():
        file.write_text("{")
    assert measured(tiny, 8, "cpu", 1) == FLAT
    assert len(asked) == 3


def test_steps_are_measured_or_it_is_said_why_not(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path))
    found = measure(tiny, 2, "cpu")
    assert sorted(found.seconds) == sorted(found.memory) == [1, 2]
    assert all(0 < each < 60 for each in found.seconds.values())
    assert all(2**26 < each < found.room for each in found.memory.values())

    def full(*_: object) -> tuple[float, int]:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(sizing.sys, "executable", "/bin/false")
    with pytest.raises(ConfigError, match=r"cannot measure how large fleets may be \(nothing\)"):
        measured(tiny, 8, "cpu", 1)
    monkeypatch.setattr(sizing, "_step", full)
    with pytest.raises(ConfigError, match="one model of .* does not fit into the free memory"):
        measure(tiny, 2, "cpu")


class Counted(Here):
    """A pool that counts how often it is asked for its slots."""

    asked = 0

    @property
    def slots(self) -> int:
        Counted.asked += 1
        return 2


def test_a_pool_is_asked_once_for_its_slots() -> None:
    found = Measured(seconds={1: 1.0, 2: 1.0}, memory={1: 1, 2: 1}, room=10)
    size = fleet_sizes(Counted(pack="auto"), "cpu", lambda *_: found)
    Counted.asked = 0  # those who check types have asked
    assert [size(Experiment(), 4) for _ in range(3)] == [2, 2, 2]
    assert Counted.asked == 1
