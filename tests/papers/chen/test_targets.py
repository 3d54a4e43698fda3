"""The targets of Chen et al., from their runs to their claims, at a tiny size."""

import json
import re
from pathlib import Path

import chen_rows
import pytest

from hopscope.configs import MarkovExperiment
from hopscope.errors import ResultsUnreadable
from hopscope.markov import growth_explained, train
from hopscope.markov.evaluation import compare, said
from hopscope.markov.learner import drawn
from hopscope.papers import preset
from hopscope.papers.basis import basis
from hopscope.papers.chen.claims import CLAIMS
from hopscope.papers.chen.measure_runs import predicted
from hopscope.papers.chen.rows import (
    ChoiceRow,
    CourseRow,
    GrowthRow,
    SeedRow,
    SettingRow,
    TransferRow,
)
from hopscope.papers.chen.settings import (
    CHOSEN_IN,
    SETTINGS,
    SMOKE_SETTINGS,
    choices,
    settings,
    shortened,
)
from hopscope.papers.chen.targets import TARGETS
from hopscope.papers.registry import PAPERS
from hopscope.papers.row import read_row
from hopscope.papers.table import Table
from hopscope.papers.target import Target
from hopscope.store import Store

NAMED = {target.name: target for target in TARGETS}
KINDS = (SeedRow, TransferRow, CourseRow, GrowthRow, ChoiceRow, SettingRow)


def test_a_row_is_read_as_what_it_says_it_is() -> None:
    rows = [*chen_rows.training(), chen_rows.growth_row(0), chen_rows.choice_row("alphabet 8", 0)]
    rows.append(chen_rows.setting_row("the paper's"))
    assert {type(row) for row in rows} == set(KINDS)
    for row in rows:
        assert read_row(KINDS, row.model_dump(mode="json", exclude_unset=True)) == row
    kept = chen_rows.seed_row(0).model_dump(mode="json")
    with pytest.raises(ResultsUnreadable, match="r2"):
        read_row(KINDS, {**kept, "r2": "0.99"})


def test_every_setting_is_another_experiment_and_the_rest_is_the_papers() -> None:
    training, varied = TARGETS[:2]
    for protocol, seeds in (("full", 20), ("reduced", 5)):
        recipe = MarkovExperiment(seeds=tuple(range(seeds)))
        assert training.runs(protocol) == (protocol, (recipe,))  # type: ignore[arg-type]
    every, base = settings(3, "full"), MarkovExperiment()
    assert list(every) == list(SETTINGS)
    assert varied.runs("full") == ("full", tuple(every.values()))
    assert varied.runs("reduced")[1][0] == base == preset("chen/paper").recipe
    assert len({each.digest() for each in every.values()}) == len(every)
    assert every["the paper's"] == MarkovExperiment(seeds=(0, 1, 2))
    changed = every["length 400"]
    assert (changed.process.length, changed.model, changed.descent) == (
        400, base.model, base.descent,
    )  # fmt: skip
    program = MarkovExperiment.model_validate(SETTINGS["the authors' program"])
    assert preset("chen/program").recipe == program
    short = shortened(every["C and W together"])
    assert [letters for letters, _ in short.descent.plan()] == ["CW", "a"]
    assert short.steps < 2_000
    assert set(settings(1, "smoke")) == set(SMOKE_SETTINGS)


def measured(target: Target, store: Store) -> Table:
    """A target by the smoke protocol."""
    recipes = target.runs("smoke")[1]
    folders = [train(recipe, store).folder for recipe in recipes]  # type: ignore[arg-type]
    rows = [row for folder in folders for row in target.measure(folder, "smoke")]
    for row in rows:
        assert read_row(target.rows, json.loads(row.to_json())) == row
    return Table(target.name, "smoke", tuple(rows), target.remarks["smoke"])


def test_the_training_has_a_row_per_question_and_a_course_for_a_figure(store: Store) -> None:
    table = measured(TARGETS[0], store)
    assert [type(row) for row in table.rows] == [SeedRow, *[TransferRow] * 11, CourseRow]
    (seed,), others, (course,) = table.of(SeedRow), table.of(TransferRow), table.of(CourseRow)
    assert seed.parents == seed.chosen_lags == (1, 2)
    assert seed.distance_end < seed.distance_begin
    lengths = [row for row in others if row.varied == "length"]
    assert [row.value for row in lengths] == [10, 20, 50, 100, 200, 400]
    assert {row.alpha for row in lengths} == {0.1}
    alphas = [row.value for row in others if row.varied == "alpha"]
    assert alphas == [0.05, 0.1, 0.2, 0.5, 1.0]
    count = len(course.epochs)
    assert 30 <= count <= 60
    assert course.stages == (("C", 300), ("W", 600), ("a", 600))
    assert (course.epochs[0], course.epochs[-1]) == (0, 1500)
    assert {300, 900} <= set(course.epochs)
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


def test_every_seed_of_a_setting_has_its_row(tmp_path: Path) -> None:
    """The same as if it had been trained alone, and with what all of them took."""
    both = settings(2, "smoke")["all at once"]
    alone = MarkovExperiment(**{**both.model_dump(), "seeds": (1,)})
    run, other = (train(each, Store(tmp_path)) for each in (both, alone))
    rows = NAMED["chen/settings"].measure(run.folder, "smoke")
    assert [(row.setting, row.seed) for row in rows] == [("all at once", 0), ("all at once", 1)]
    assert {row.seconds for row in rows} == {round(run.folder.manifest.seconds, 1)}
    assert rows[1].a == float(other.state(1)["a"]) != rows[0].a
    chains = drawn(alone, 1, "validation")
    apart = compare(alone, said(alone, other.state(1), chains), chains)
    assert (rows[1].distance, rows[1].loss.model) == (apart.distance, apart.seen.model)


def test_every_seed_has_its_growth_and_its_choice(tmp_path: Path) -> None:
    short = {"epochs": (50, 50, 100), "chains": 300, "validation_chains": 50}
    run = train(MarkovExperiment(descent=short, seeds=(3, 5)), tmp_path)
    rows = NAMED["chen/growth"].measure(run.folder, "smoke")
    assert [row.seed for row in rows] == [3, 5]
    found = growth_explained(run, 5)
    assert rows[1].slopes == {name: found.slope(name) for name in found.courses}
    assert rows[1].epochs[-1] == 100
    for name, course in found.courses.items():
        assert rows[1].courses[name] == pytest.approx(course.tolist(), abs=1e-5)
    experiment = choices(2, "smoke")["the paper's"]
    chosen = NAMED["chen/choices"].measure(train(experiment, tmp_path).folder, "smoke")
    assert [(row.setting, row.seed) for row in chosen] == [("the paper's", 0), ("the paper's", 1)]
    for row in chosen:
        assert (row.predicted, row.chosen_lags) == (predicted(experiment), (1, 2))
        assert row.share > 0.99


@pytest.mark.slow
def test_every_target_is_measured_and_its_claims_judged(store: Store, tmp_path: Path) -> None:
    results = PAPERS.results(tmp_path)
    for target in TARGETS:
        results.save(measured(target, store))
        assert re.search(r"\d min of training", basis(results.table(target.name), target))
    found = {row.setting: row for row in results.table("chen/settings").of(SettingRow)}
    assert tuple(found) == SMOKE_SETTINGS
    together = found["C and W together"]
    assert together.changes["descent"]["stages"] == "CW,a"
    assert set(together.changes) == {"descent"}
    assert together.predicted == {"paper": (1, 2), "heads": (1, 2)}
    assert together.chosen_lags == (1, 2)
    assert set(together.slopes_of_a) == {"10", "30", "100", "300"}
    assert together.loss.truth < together.loss.model
    (grown,) = results.table("chen/growth").of(GrowthRow)
    assert grown.slopes["counts"] > grown.slopes["even"]
    chosen = {row.setting: row for row in results.table("chen/choices").of(ChoiceRow)}
    assert tuple(chosen) == CHOSEN_IN
    assert chosen["the paper's"].chosen_lags == (1, 2)
    judged = {
        claim.id.removeprefix("chen/"): claim.judge([results.table(name) for name in claim.targets])
        for claim in CLAIMS
    }
    for name, verdict in {
        "stage-1-selects-the-parents": "reproduced",
        "limit-is-gih": "reproduced",
        "stage-2-makes-copiers": "not reproduced",  # too few epochs
        "c-and-w-together": "reproduced",
        "any-window": "not measured",
    }.items():
        assert judged[name].verdict == verdict, name
    assert {claim.finding(results).verdict for claim in CLAIMS} == {"not measured"}
