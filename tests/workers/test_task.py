"""Which deaths of workers count against a job: those that it may have caused itself."""

import json
from collections import deque
from collections.abc import Callable

import pytest

from hopscope.configs import Experiment
from hopscope.errors import WorkerDied
from hopscope.store import Store
from hopscope.store.lease import LEASE
from hopscope.workers import Job
from hopscope.workers.packing import member, together
from hopscope.workers.task import ATTEMPTS, STARTS, Task

Act = Callable[[Experiment, Store], object]


def dies(task: Task, act: Act, recipe: Experiment, store: Store) -> list[str]:
    """A worker gets the job, acts, and is killed; what is told of it, if it is given up."""
    waiting: deque[Task] = deque()
    task.handed_out()
    act(recipe, store)
    reports = task.died(waiting, "SIGKILL")
    assert [*waiting] == ([] if reports else [task])
    errors = [report.trouble.error() for report in reports if report.trouble]
    assert all(isinstance(error, WorkerDied) for error in errors)
    return [str(error) for error in errors]


def begins(recipe: Experiment, store: Store) -> None:
    """A lease stays of a process that is gone."""
    folder = store.create(recipe)
    with folder.locked():
        left = json.loads((folder.path / LEASE).read_text())
    (folder.path / LEASE).write_text(json.dumps(left | {"born": "1"}))


def comes_further(recipe: Experiment, store: Store) -> None:
    folder = store.create(recipe)
    with folder.locked():
        folder.commit({}, step=folder.manifest.step + 1)
    begins(recipe, store)


def nothing(recipe: Experiment, store: Store) -> None:
    """Still starting up."""


@pytest.fixture
def recipes(tiny: Experiment) -> list[Experiment]:
    return [member(tiny, seed) for seed in range(2)]


@pytest.mark.parametrize("size", [1, 2])
def test_a_job_that_comes_no_further_is_given_up(
    recipes: list[Experiment], store: Store, size: int
) -> None:
    task = Task(Job.of(tuple(recipes[:size]), store, "cpu", 1))
    recipe = recipes[0] if size == 1 else together(recipes)
    for act in (begins, comes_further, nothing, *(ATTEMPTS - 1) * (begins, nothing)):
        assert dies(task, act, recipe, store) == []
    told = dies(task, begins, recipe, store)
    assert told == [
        f"{each.run_name()}: its worker died {ATTEMPTS} times and came no further (SIGKILL)"
        for each in recipes[:size]
    ]


def test_one_that_comes_further_every_time_is_never_given_up(
    recipes: list[Experiment], store: Store
) -> None:
    task = Task(Job.of((recipes[0],), store, "cpu", 1))
    for _ in range(3 * ATTEMPTS):
        assert dies(task, comes_further, recipes[0], store) == []


def test_where_no_worker_begins_at_all_it_ends(recipes: list[Experiment], store: Store) -> None:
    task = Task(Job.of((recipes[0],), store, "cpu", 1))
    for _ in range(STARTS - 1):
        assert dies(task, nothing, recipes[0], store) == []
    (line,) = dies(task, nothing, recipes[0], store)
    assert line.endswith(f"its worker died {STARTS} times before the run began (SIGKILL)")
