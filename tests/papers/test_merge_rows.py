"""Rows of runs measured here and elsewhere come in the order of the target's recipes."""

from dataclasses import replace
from pathlib import Path

from hopscope import __version__
from hopscope.configs import Experiment
from hopscope.papers.merge_rows import measured, merged
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol, Table
from hopscope.papers.table_file import read_table
from hopscope.papers.target import Target
from hopscope.store import RunFolder, Store


class Seeded(Row):
    seed: int


def seeds(folder: RunFolder, protocol: Protocol) -> list[Seeded]:
    return [Seeded(seed=seed) for seed in folder.recipe.seeds]


def test_rows_are_merged_in_the_order_of_the_recipes(tmp_path: Path) -> None:
    recipes = tuple(Experiment(seeds=(seed,)) for seed in range(3))
    target = Target("musat/x", "x", (Seeded,), seeds, {"full": lambda: recipes})
    names = [recipe.run_name() for recipe in recipes]
    folder = Store(tmp_path).create(recipes[0])
    here = {folder.name: measured(target, "full", folder)}
    known = Table(
        "musat/x", "full", (Seeded(run=names[1], seed=1),), hopscope="0.0.9", machine="there"
    )
    found = merged(target, "full", here, [known], "here")
    assert found.rows == (Seeded(run=names[0], seed=0), Seeded(run=names[1], seed=1))
    assert (found.wanted, found.missing) == (3, 1)
    assert (found.hopscope, found.machine) == (f"0.0.9; {__version__}", "there; here")
    again = merged(target, "full", {}, [found], "elsewhere")
    assert (again.rows, again.machine) == (found.rows, "there; here")
    other = replace(known, rows=(Seeded(run=names[2], seed=2), Seeded(run=names[1], seed=9)))
    both = merged(target, "full", {}, [found, other], "elsewhere")
    assert [row.seed for row in both.rows if isinstance(row, Seeded)] == [0, 9, 2]
    assert both.missing == 0


def test_a_run_without_rows_is_measured_all_the_same(tmp_path: Path) -> None:
    recipes = tuple(Experiment(seeds=(seed,)) for seed in range(2))
    target = Target("musat/x", "x", (Seeded,), seeds, {"full": lambda: recipes})
    empty, other = (recipe.run_name() for recipe in recipes)
    found = merged(target, "full", {empty: []}, [], "here")
    assert (found.runs, found.missing) == ((empty,), 1)
    path = tmp_path / "x.jsonl"
    path.write_bytes(found.to_bytes())
    assert read_table(path, "musat/x", (Seeded,)) == found
    both = merged(target, "full", {other: [Seeded(run=other, seed=1)]}, [found], "here")
    assert (both.without_rows, both.missing) == ((empty,), 0)
    later = merged(target, "full", {empty: [Seeded(run=empty, seed=0)]}, [both], "here")
    assert (later.without_rows, len(later.rows)) == ((), 2)
