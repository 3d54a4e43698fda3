"""Rows of runs measured here and elsewhere come in the order of the target's recipes."""

from pathlib import Path

from hopscope import __version__
from hopscope.configs import Experiment
from hopscope.papers.merge_rows import measured, merged
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol, Table
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
    found = merged(target, "full", here, known, "here")
    assert found.rows == (Seeded(run=names[0], seed=0), Seeded(run=names[1], seed=1))
    assert (found.wanted, found.missing) == (3, 1)
    assert (found.hopscope, found.machine) == (f"0.0.9; {__version__}", "there; here")
    again = merged(target, "full", {}, found, "elsewhere")
    assert (again.rows, again.machine) == (found.rows, "there; here")
