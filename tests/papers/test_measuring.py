"""Runs are measured once, whichever of several processes does it, and no row is lost."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.papers.measuring import Measuring
from hopscope.papers.results_folder import Results
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol, Table
from hopscope.papers.target import Target
from hopscope.store import RunFolder, Store

RECIPES = tuple(Experiment(seeds=(seed,)) for seed in range(4))
NAMES = [recipe.run_name() for recipe in RECIPES]


class Seeded(Row):
    seed: int


class Sweep:
    """Four runs, of which the first was measured elsewhere."""

    def __init__(self, root: Path) -> None:
        self.measured: list[str] = []
        self.target = Target("musat/x", "x", (Seeded,), self.measure, {"full": lambda: RECIPES})
        self.store, self.results = Store(root / "runs"), Results(root, {"musat/x": self.target})
        row = Seeded(run=NAMES[0], seed=0)
        self.results.save_part(Table("musat/x", "full", (row,), wanted=4, machine="elsewhere"))
        self.folders = [self.store.create(recipe) for recipe in RECIPES]

    def measure(self, folder: RunFolder, protocol: Protocol) -> list[Seeded]:
        self.measured.append(folder.name)
        return [Seeded(seed=seed) for seed in folder.recipe.seeds]

    def process(self) -> Measuring:
        """What one `hopscope reproduce` knows when it begins."""
        before = self.results.part("musat/x", "full")
        return Measuring(self.target, "full", self.store, self.results, "here", before)

    def seeds(self) -> list[int]:
        return [row.seed for row in self.results.table("musat/x").of(Seeded)]


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return Sweep(tmp_path)


def test_rows_that_another_process_kept_are_not_measured_again(sweep: Sweep) -> None:
    one, other = sweep.process(), sweep.process()
    one.measure(sweep.folders[1])
    other.measure(sweep.folders[2])
    for each in (one, other):
        for folder in sweep.folders:
            each.measure(folder)
    assert sorted(sweep.measured) == sorted(NAMES[1:])
    assert other.save() == sweep.results.path("musat/x")
    assert sweep.seeds() == [0, 1, 2, 3]


def test_who_ends_later_does_not_lose_what_the_first_has_completed(sweep: Sweep) -> None:
    one, other = sweep.process(), sweep.process()
    other.measure(sweep.folders[1])
    for folder in sweep.folders[1:]:
        one.measure(folder)
    one.save()
    whole = sweep.results.path("musat/x").read_bytes()
    assert sweep.results.parts("musat/x") == []
    for folder in sweep.folders[:3]:  # the last was trained by the first process alone
        other.measure(folder)
    assert other.save() == sweep.results.path("musat/x")
    assert sorted(sweep.measured) == sorted(NAMES[1:])
    assert sweep.results.path("musat/x").read_bytes() == whole
    assert sweep.results.parts("musat/x") == []


def test_a_table_that_there_was_before_is_measured_anew(sweep: Sweep) -> None:
    for _ in range(2):
        process = sweep.process()
        for folder in sweep.folders:
            process.measure(folder)
        assert process.save() == sweep.results.path("musat/x")
        assert sweep.seeds() == [0, 1, 2, 3]
    assert sorted(sweep.measured) == sorted([*NAMES[1:], *NAMES])


def test_while_runs_are_missing_nothing_is_called_the_table(sweep: Sweep) -> None:
    one = sweep.process()
    one.measure(sweep.folders[2])
    assert one.save() == sweep.results.part_path("musat/x", "full")
    assert not sweep.results.has("musat/x")
    assert sweep.results.part("musat/x", "full").runs == (NAMES[0], NAMES[2])


def test_nothing_known_leaves_no_file(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path)
    sweep.results.part_path("musat/x", "full").unlink()
    assert sweep.process().save() is None
    assert sweep.results.so_far("musat/x") == []


def test_one_process_at_a_time_writes(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopscope.papers.results_folder.PATIENCE", 0.0)
    one = sweep.process()
    measure = sweep.target.measure

    def slowly(folder: RunFolder, protocol: Protocol) -> Sequence[Row]:
        rows = measure(folder, protocol)
        busy.enter_context(sweep.results.held())  # another process, from now on
        return rows

    one.target = replace(sweep.target, measure=slowly)
    with ExitStack() as busy:
        one.measure(sweep.folders[1])
        one.measure(sweep.folders[2])
        told = [str(error) for error in one.troubles.values()]
        assert told == [f"another process writes to {sweep.results.root}: wait for it"] * 2
    one.save()  # what was measured is not lost
    assert sweep.results.part("musat/x", "full").runs == (NAMES[0], NAMES[1])
