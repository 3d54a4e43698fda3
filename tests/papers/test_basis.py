"""What a table rests on, in words."""

import re
from dataclasses import replace
from pathlib import Path

import musat_rows
from musat_rows import with_

from hopscope.papers.basis import basis
from hopscope.papers.cost import in_flop, training_flop
from hopscope.papers.musat.recipes import tiny
from hopscope.papers.registry import PAPERS
from hopscope.papers.table import Table

ABC = "musat/fig5"


def table(*seconds: float, run: str | None = "one") -> Table:
    rows = [
        with_(musat_rows.circuit_row("key 0"), run=run and f"{run}-{seed}", seed=seed, seconds=its)
        for seed, its in enumerate(seconds)
    ]
    return Table(ABC, "full", tuple(rows))


def test_runs_seeds_and_hours_are_told() -> None:
    target = PAPERS.targets[ABC]
    assert basis(table(90.0), target) == f"{ABC}: 1 run, seed 0, 2 min of training"
    found = basis(table(3_600.0, 7_200.0), target)
    assert found == f"{ABC}: 2 runs, 2 seeds, 3.0 h of training"


def test_what_is_not_measured_yet_is_told() -> None:
    part = replace(table(3_600.0, 7_200.0), wanted=3)
    found = basis(part, PAPERS.targets[ABC])
    assert found == f"{ABC}: full protocol, 2 of 3 runs, 2 seeds, 3.0 h of training"
    assert basis(replace(part, wanted=2), PAPERS.targets[ABC]).startswith(f"{ABC}: 2 runs, ")


def test_the_arithmetic_is_told_where_it_was_recorded() -> None:
    first, second = table(90.0, 90.0).rows
    rows = (with_(first, precision="float32"), with_(second, precision="bf16"))
    found = basis(Table(ABC, "full", rows), PAPERS.targets[ABC])
    assert found.endswith("3 min of training, in bf16 and float32")
    found = basis(Table(ABC, "full", (first, rows[1])), PAPERS.targets[ABC])
    assert found.endswith(", in bf16")


def test_a_run_of_several_models_is_counted_once() -> None:
    rows = [with_(row, run="fleet") for row in table(60.0, 60.0).rows]
    found = basis(Table(ABC, "full", tuple(rows)), PAPERS.targets[ABC])
    assert found == f"{ABC}: 1 run, 2 seeds, 1 min of training"


def test_language_models_are_asked_and_not_trained() -> None:
    rows = (with_(musat_rows.answer_row("small", "kingdoms"), run="one", seconds=120.0),)
    found = basis(Table("musat/fig2", "full", rows), PAPERS.targets["musat/fig2"])
    assert found == "musat/fig2: 1 run, 2 min of asking, in float32"


def test_operations_are_those_of_the_runs_that_there_are() -> None:
    recipe = tiny(1, 2, 400)
    rows = [with_(row, run=recipe.run_name()) for row in table(60.0).rows]
    found = basis(Table(ABC, "smoke", tuple(rows)), PAPERS.targets[ABC])
    assert f", {in_flop(training_flop(recipe))}, " in found


def test_what_is_computed_needs_no_training() -> None:
    table = Table("musat/depth", "full", (musat_rows.depth_row(1, 1, 1, 2),))
    found = basis(table, PAPERS.targets["musat/depth"])
    assert found == "musat/depth: computed, without any training"


def test_of_every_claim_it_is_said_what_it_cost() -> None:
    """On the rows that come with hopscope."""
    results = PAPERS.results(Path(__file__).parents[2] / "results")
    for claim in PAPERS.claims.values():
        found = claim.finding(results)
        for told in found.basis.split("; "):
            assert re.search(r" (h|min) of (training|asking)|computed, without", told), claim.id
