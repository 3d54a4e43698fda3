"""Runs are measured once, whichever of several processes does it, and no row is lost."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from hopscope import __version__
from hopscope.configs import Experiment
from hopscope.papers.measuring import Measuring
from hopscope.papers.merge_rows import merged
from hopscope.papers.results_folder import Results
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol, Table
from hopscope.papers.target import Target
from hopscope.store import RunFolder, Store

X = "musat/x"
RECIPES = tuple(Experiment(seeds=(seed,)) for seed in range(4))
NAMES = [recipe.run_name() for recipe in RECIPES]


class Seeded(Row):
    seed: int


def row(seed: int) -> Seeded:
    return Seeded(run=NAMES[seed], seed=seed)


class Sweep:
    """Four runs, of which the first was measured elsewhere."""

    def __init__(self, root: Path) -> None:
        self.measured: list[str] = []
        self.target = Target(X, "x", (Seeded,), self.measure, {"full": lambda: RECIPES})
        self.store, self.results = Store(root / "runs"), Results(root, {X: self.target})
        self.results.save_part(Table(X, "full", (row(0),), wanted=4, machine="elsewhere"))
        self.folders = [self.store.create(recipe) for recipe in RECIPES]

    def measure(self, folder: RunFolder, protocol: Protocol) -> list[Seeded]:
        self.measured.append(folder.name)
        return [Seeded(seed=seed) for seed in folder.recipe.seeds]

    def process(self) -> Measuring:
        """What one `hopscope reproduce` knows when it begins."""
        before = self.results.part(X, "full")
        return Measuring(self.target, "full", self.store, self.results, "here", before)

    def seeds(self) -> list[int]:
        return [row.seed for row in self.results.table(X).of(Seeded)]


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return Sweep(tmp_path)


def test_rows_that_another_process_kept_are_not_measured_again(sweep: Sweep) -> None:
    one, other = sweep.process(), sweep.process()
    one.measure(sweep.folders[1])
    assert one.save() == sweep.results.part_path(X, "full")  # runs are missing: it is no table
    assert sweep.results.part(X, "full").runs == (NAMES[0], NAMES[1])
    other.measure(sweep.folders[2])
    for each in (one, other):
        for folder in sweep.folders:
            each.measure(folder)
    assert sorted(sweep.measured) == sorted(NAMES[1:])
    assert other.save() == sweep.results.path(X)
    assert sweep.seeds() == [0, 1, 2, 3]


def test_who_ends_later_does_not_lose_what_the_first_has_completed(sweep: Sweep) -> None:
    one, other = sweep.process(), sweep.process()
    other.measure(sweep.folders[1])
    for folder in sweep.folders[1:]:
        one.measure(folder)
    one.save()
    whole = sweep.results.path(X).read_bytes()
    assert sweep.results.parts(X) == []
    for folder in sweep.folders[:3]:  # the last was trained by the first process alone
        other.measure(folder)
    assert other.save() == sweep.results.path(X)
    assert sorted(sweep.measured) == sorted(NAMES[1:])
    assert sweep.results.path(X).read_bytes() == whole
    assert sweep.results.parts(X) == []
    again = sweep.process()  # a table that there was before is measured anew
    for folder in sweep.folders:
        again.measure(folder)
    assert again.save() == sweep.results.path(X)
    assert sorted(sweep.measured) == sorted([*NAMES[1:], *NAMES])


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
    assert sweep.results.part(X, "full").runs == (NAMES[0], NAMES[1])


def test_rows_are_merged_in_the_order_of_the_recipes_with_where_they_come_from(
    sweep: Sweep,
) -> None:
    known = Table(X, "full", (row(1),), hopscope="0.0.9", machine="there")
    found = merged(sweep.target, "full", {NAMES[0]: [row(0)], NAMES[3]: []}, [known], "here")
    assert found.rows == (row(0), row(1))
    assert (found.wanted, found.missing, found.without_rows) == (4, 1, (NAMES[3],))
    assert (found.hopscope, found.machine) == (f"0.0.9; {__version__}", "there; here")
    sweep.results.save_part(found)
    assert sweep.results.part(X, "full") == found
    other = replace(known, rows=(row(2), Seeded(run=NAMES[1], seed=9)))
    both = merged(sweep.target, "full", {}, [found, other], "elsewhere")
    assert [row.seed for row in both.of(Seeded)] == [0, 9, 2]
    assert (both.missing, both.without_rows, both.machine) == (0, (NAMES[3],), "there; here")
    later = merged(sweep.target, "full", {NAMES[3]: [row(3)]}, [both], "here")
    assert (later.without_rows, len(later.rows)) == ((), 4)
