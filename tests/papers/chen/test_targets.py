"""The targets of Chen et al., from their runs to their claims, at a tiny size."""

import re
from pathlib import Path

import pytest

from hopscope.configs import MarkovExperiment
from hopscope.markov import train
from hopscope.markov.evaluation import compare, said
from hopscope.markov.learner import drawn
from hopscope.papers.basis import basis
from hopscope.papers.chen.claims import CLAIMS
from hopscope.papers.chen.measure_runs import setting_rows
from hopscope.papers.chen.rows import (
    ChoiceRow,
    CourseRow,
    GrowthRow,
    SeedRow,
    SettingRow,
    TransferRow,
)
from hopscope.papers.chen.settings import CHOSEN_IN, SETTINGS, SMOKE_SETTINGS, settings
from hopscope.papers.chen.targets import TARGETS
from hopscope.papers.registry import PAPERS
from hopscope.papers.results_folder import Results
from hopscope.papers.table import Table
from hopscope.store import Store


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All targets by the smoke protocol."""
    root: Path = tmp_path_factory.mktemp("chen")
    store, made = Store(root / "runs"), PAPERS.results(root / "results")
    for target in TARGETS:
        protocol, recipes = target.runs("smoke")
        assert protocol == "smoke"
        folders = [train(recipe, store).folder for recipe in recipes]  # type: ignore[arg-type]
        rows = [row for folder in folders for row in target.measure(folder, protocol)]
        made.save(Table(target.name, protocol, tuple(rows), target.remarks[protocol]))
        assert list(made.table(target.name).rows) == rows  # as they come back from JSON
    return made


@pytest.fixture
def table(results: Results) -> Table:
    return results.table("chen/training")


def test_the_paper_s_setting_is_one_run_over_seeds() -> None:
    training = TARGETS[0]
    assert training.runs("full") == ("full", (MarkovExperiment(seeds=tuple(range(20))),))
    assert training.runs("reduced") == ("reduced", (MarkovExperiment(seeds=tuple(range(5))),))


def test_settings_are_runs_of_their_own() -> None:
    protocol, recipes = TARGETS[1].runs("full")
    assert protocol == "full"
    assert len({recipe.digest() for recipe in recipes}) == len(SETTINGS)
    assert recipes[0] == MarkovExperiment(seeds=(0, 1, 2))
    assert TARGETS[1].runs("reduced")[1][0] == MarkovExperiment()
    assert set(SMOKE_SETTINGS) <= set(SETTINGS)
    short = settings(1, "smoke")["C and W together"]
    assert short.descent.plan() == [("CW", 900), ("a", 600)]


def test_a_row_per_question(table: Table) -> None:
    kinds = [type(row) for row in table.rows]
    assert kinds == [SeedRow, *[TransferRow] * 11, CourseRow]
    (seed,), others = table.of(SeedRow), table.of(TransferRow)
    assert seed.parents == seed.chosen_lags == (1, 2)
    assert seed.distance_end < seed.distance_begin
    lengths = [row for row in others if row.varied == "length"]
    assert [row.value for row in lengths] == [10, 20, 50, 100, 200, 400]
    assert {row.alpha for row in lengths} == {0.1}
    alphas = [row.value for row in others if row.varied == "alpha"]
    assert alphas == [0.05, 0.1, 0.2, 0.5, 1.0]


def test_the_course_is_enough_for_a_figure(table: Table) -> None:
    (seed,), (course,) = table.of(SeedRow), table.of(CourseRow)
    count = len(course.epochs)
    assert 30 <= count <= 60
    assert course.stages == (("C", 300), ("W", 600), ("a", 600))
    ends = [300, 900, 1500]
    assert course.epochs[0] == 0
    assert course.epochs[-1] == 1500
    assert set(ends) <= set(course.epochs)
    assert set(course.shares) == {"{1}", "{2}", "{3}", "{1,2}", "{1,3}", "{2,3}"}
    assert set(course.attention) == {"head 1 to lag 1", "head 2 to lag 2"}
    columns = [*course.shares.values(), *course.attention.values(), course.distance]
    columns += [course.a, course.train, course.validation]
    assert {len(column) for column in columns} == {count}
    last = [column[-1] for column in course.attention.values()]
    assert last == pytest.approx(seed.attention_after, abs=1e-5)
    assert course.a[-1] == pytest.approx(seed.a, abs=1e-5)
    assert course.distance[-1] == pytest.approx(seed.distance_end, abs=1e-5)
    known = [near is not None for near in course.distance]
    assert known == [epoch >= 900 for epoch in course.epochs]


def test_a_row_per_setting(results: Results) -> None:
    found = {row.setting: row for row in results.table("chen/settings").of(SettingRow)}
    assert tuple(found) == SMOKE_SETTINGS
    together = found["C and W together"]
    assert together.changes["descent"]["stages"] == "CW,a"
    assert set(together.changes) == {"descent"}
    assert together.predicted == {"paper": (1, 2), "heads": (1, 2)}
    assert together.chosen_lags == (1, 2)
    assert set(together.slopes_of_a) == {"10", "30", "100", "300"}
    assert together.loss.truth < together.loss.model


def test_every_seed_of_a_setting_has_its_row(tmp_path: Path) -> None:
    """The same as if it had been trained alone, and with what all of them took."""
    both = settings(2, "smoke")["all at once"]
    alone = MarkovExperiment(**{**both.model_dump(), "seeds": (1,)})
    run, other = (train(each, Store(tmp_path)) for each in (both, alone))
    rows = setting_rows(run.folder, "smoke")
    assert [row.seed for row in rows] == [0, 1]
    assert {row.setting for row in rows} == {"all at once"}
    assert {row.seconds for row in rows} == {round(run.folder.manifest.seconds, 1)}
    assert rows[1].a == float(other.state(1)["a"]) != rows[0].a
    chains = drawn(alone, 1, "validation")
    apart = compare(alone, said(alone, other.state(1), chains), chains)
    assert (rows[1].distance, rows[1].loss.model) == (apart.distance, apart.seen.model)


def test_every_table_says_what_its_training_took(results: Results) -> None:
    for target in TARGETS:
        told = basis(results.table(target.name), target)
        assert re.search(r"\d min of training", told), told


def test_the_growth_is_explained_and_the_choice_of_every_setting_told(results: Results) -> None:
    (grown,) = results.table("chen/growth").of(GrowthRow)
    assert grown.slopes["counts"] > grown.slopes["even"]
    assert len(grown.courses["counts"]) == len(grown.epochs)
    chosen = {row.setting: row for row in results.table("chen/choices").of(ChoiceRow)}
    assert tuple(chosen) == CHOSEN_IN
    assert chosen["the paper's"].chosen_lags == (1, 2)


def test_the_claims_are_judged(results: Results) -> None:
    found = {
        claim.id.removeprefix("chen/"): claim.judge([results.table(name) for name in claim.targets])
        for claim in CLAIMS
    }
    assert found["stage-1-selects-the-parents"].verdict == "reproduced"
    assert found["limit-is-gih"].verdict == "reproduced"
    assert found["stage-2-makes-copiers"].verdict == "not reproduced"  # too few epochs
    assert found["c-and-w-together"].verdict == "reproduced"
    assert found["any-window"].verdict == "not measured"
    assert found["any-window"].evidence.startswith("the smoke protocol leaves out: window 2")


def test_a_short_training_decides_nothing(results: Results) -> None:
    assert {claim.finding(results).verdict for claim in CLAIMS} == {"not measured"}
