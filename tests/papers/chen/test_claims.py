"""Chen et al.: experiments from their runs to their rows, at a tiny size; and every claim can come
out either way, reproduced on rows as they should be, not on bent ones.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from chen_rows import TINY, choice_row, course_row, growth_row, setting_row, training, transfer_row

from hopscope.configs import NgramExperiment
from hopscope.ngram import growth_explained, train
from hopscope.ngram.evaluation import compare, model_answers
from hopscope.ngram.run import NgramRun
from hopscope.ngram.trainer import chains_of
from hopscope.papers.chen import settings as settings_module
from hopscope.papers.chen.claims import CLAIMS
from hopscope.papers.chen.experiments import EXPERIMENTS
from hopscope.papers.chen.measure_runs import predicted
from hopscope.papers.chen.rows import CourseRow, SeedRow, TransferRow
from hopscope.papers.chen.settings import CHOSEN_IN, SETTINGS, first_stage, settings
from hopscope.papers.claim import Claim
from hopscope.papers.row import ResultRow, read_row
from hopscope.store import Store

KNOWN = {claim.id: claim for claim in CLAIMS}


ROWS: dict[str, list[ResultRow]] = {
    "chen/training": training(),
    "chen/settings": [setting_row(name, seed) for name in SETTINGS for seed in range(3)],
    "chen/growth": [growth_row(seed) for seed in range(3)],
    "chen/choices": [choice_row(name, seed) for name in CHOSEN_IN for seed in range(3)],
}


def rows_of(claim: Claim) -> list[ResultRow]:
    return [*ROWS[claim.needs[0]]]


def bent(rows: list[ResultRow], which: dict[str, Any], **values: Any) -> list[ResultRow]:
    """The rows, the last of those that fit having other values."""
    fitting = [
        place
        for place, row in enumerate(rows)
        if all(getattr(row, name, None) == is_ for name, is_ in which.items())
    ]
    row = rows[fitting[-1]]
    known = row.model_dump(exclude_unset=True)
    rows[fitting[-1]] = type(row).model_validate({**known, **values})
    return rows


def test_rows_as_the_paper_says_reproduce() -> None:
    for name, claim in KNOWN.items():
        found = claim.judge(rows_of(claim))
        assert found.verdict == "reproduced", found
        assert all((found.ours, found.evidence)), name


SEED = {"what": "seed"}
LOSSES = {"model": 0.25, "gih": 0.3, "bayes": 0.2, "truth": 0.1}
PRIOR = {"what": "transfer", "varied": "alpha"}
SLOPES = growth_row(0).slopes
BENT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("stage-1-selects-the-parents", SEED, {"share_after_stage_1": 0.98}),
    ("stage-1-selects-the-parents", SEED, {"chosen_lags": [1, 3]}),
    ("stage-2-makes-copiers", SEED, {"attention_after": [0.995, 0.98]}),
    ("stage-2-makes-copiers", SEED, {"attention_before": [0.996]}),
    ("stage-3-grows-a", SEED, {"a": 4.0}),
    ("a-grows-as-a-logarithm", SEED, {"r2": 0.98}),
    ("slope-of-a", {"what": "growth"}, {"one_over_gap": 1.2}),
    ("slope-of-a", {"what": "growth"}, {"slopes": {**SLOPES, "trained": 1.6}}),
    ("rule-over-seeds", {"setting": "the paper's"}, {"chosen_lags": [1, 3]}),
    ("limit-is-gih", SEED, {"distance_end": 0.03}),
    ("limit-is-gih", SEED, {"distance_end": 0.01, "distance_begin": 0.005}),
    ("carries-over-to-other-lengths", {"varied": "length"}, {"distance": 0.03}),
    ("carries-over-to-other-priors", PRIOR, {"distance": 0.03}),
    ("predicts-as-well-as-gih", PRIOR, {"loss": {**LOSSES, "model": 0.31}}),
    ("c-and-w-together", {"setting": "C and W together"}, {"chosen_lags": [1]}),
    ("c-and-w-together", {"setting": "C and W together"}, {"distance": 0.03}),
    ("all-at-once", {"setting": "all at once"}, {"loss": {**LOSSES, "model": 0.26}}),
    ("information-names-the-winner", {"setting": "parent 1"}, {"chosen_lags": [1]}),
    ("any-window", {"setting": "window 6"}, {"chosen_lags": [1, 6]}),
    ("any-window", {"setting": "window 4"}, {"distance": 0.03}),
    ("longer-chains-come-nearer", {"setting": "length 400"}, {"distance": 0.004}),
    ("program-as-the-paper", {"setting": "unit copies"}, {"chosen_lags": [2]}),
]


OPEN: list[tuple[str, dict[str, Any]]] = [
    ("cross-entropy", {"distance": 0.03}),
    ("a-goes-on-growing", {"slopes_of_a": {"1000": 0.01}}),
]
"""Claims on what the paper leaves open: bent in one setting, and then in all."""


def test_bent_rows_do_not() -> None:
    assert {f"chen/{name}" for name, *_ in (*BENT, *OPEN)} == set(KNOWN)
    for name, which, values in BENT:
        claim = KNOWN[f"chen/{name}"]
        found = claim.judge(bent(rows_of(claim), which, **values))
        assert found.verdict == "not reproduced", (values, found)
    for name, values in OPEN:
        claim = KNOWN[f"chen/{name}"]
        rows = bent(rows_of(claim), {"setting": "the paper's"}, **values)
        assert claim.judge(rows).verdict == "depends on an open choice", name
        other = bent(rows_of(claim), {"setting": "cross-entropy of a softmax"}, **values)
        assert claim.judge(other).verdict == "depends on an open choice", name
        every = [type(row).model_validate({**row.model_dump(exclude_unset=True), **values})
                 for row in rows]  # fmt: skip
        assert claim.judge(every).verdict == "not reproduced", name


@pytest.mark.parametrize("name", ["information-names-the-winner", "rule-over-seeds"])
def test_sharp_heads_are_a_variant_of_the_rule(name: str) -> None:
    """They decide if they were tried in every setting in which heads as in the paper fail."""
    claim = KNOWN[f"chen/{name}"]
    rows = bent(rows_of(claim), {"setting": "alphabet 8"}, chosen_lags=[1])
    bent(rows, {"setting": "parents 1, 2, 3, degree 3"}, chosen_lags=[1, 3])
    found = claim.judge(rows)
    assert found.verdict == "depends on an open choice"
    assert "not in parents 1, 2, 3, degree 3 / alphabet 8; " in found.evidence
    untried = [row for row in rows if "alphabet 8, sharp" not in getattr(row, "setting", "")]
    assert claim.judge(untried).verdict == "not reproduced"
    bent(rows, {"setting": "alphabet 8, sharp heads"}, chosen_lags=[1])
    assert claim.judge(rows).verdict == "not reproduced"


def test_chains_as_in_training_are_no_others() -> None:
    """They stand among those of each length and of each prior, and count once."""
    own = [transfer_row(0, varied, 100, 0.1) for varied in ("length", "alpha")]
    for name in ("lengths", "priors"):
        claim = KNOWN[f"chen/carries-over-to-other-{name}"]
        far = [row.model_copy(update={"distance": 0.5}) for row in own]
        assert claim.judge([*rows_of(claim), *far]) == claim.judge(rows_of(claim))
    claim = KNOWN["chen/predicts-as-well-as-gih"]
    for varied, verdict in (("alpha", "reproduced"), ("length", "not reproduced")):
        which = {"varied": varied, "length": 100, "alpha": 0.1}
        rows = bent([*rows_of(claim), *own], which, loss={**LOSSES, "model": 0.31})
        assert claim.judge(rows).verdict == verdict


def test_what_lacks_settings_or_seeds_is_not_judged() -> None:
    for name, claim in KNOWN.items():
        two = [row for row in rows_of(claim) if getattr(row, "seed", 0) < 2]
        assert claim.judge(two).verdict == "not enough seeds", name
        assert claim.judge([course_row(0)]).verdict == "not measured", name
    apart = [setting_row("the paper's", seed) for seed in range(3)]
    apart += [setting_row("all at once", seed) for seed in (3, 4, 5)]  # no seed of both
    assert KNOWN["chen/all-at-once"].judge([*apart]).verdict == "not enough seeds"
    found = KNOWN["chen/any-window"].judge([*apart])
    assert (found.verdict, found.evidence) == (
        "not measured", "no model of window 2 / window 4 / window 6",
    )  # fmt: skip


NAMED = {each.name: each for each in EXPERIMENTS}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same settings, whose trainings are over in a second."""
    monkeypatch.setattr(settings_module, "SETTINGS", TINY)


def measured(name: str, run: NgramRun) -> list[Any]:
    """The rows of a run, which come back from a file as they are."""
    rows = [*NAMED[name].measure(run.folder)]
    kept = [json.loads(row.to_json()) for row in rows]
    assert [read_row(NAMED[name].rows, each) for each in kept] == rows
    return rows


def test_the_training_has_a_row_per_question_and_a_course_for_a_figure(store: Store) -> None:
    recipe = NgramExperiment(**TINY["the paper's"])
    rows = measured("chen/training", train(recipe, store))
    assert [type(row) for row in rows] == [SeedRow, *[TransferRow] * 11, CourseRow]
    seed, *others, course = rows
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


@pytest.mark.usefixtures("tiny")
def test_every_seed_of_a_setting_has_its_row(tmp_path: Path) -> None:
    """The same as if it had been trained alone, and with what all of them took."""
    both = settings(2)["all at once"]
    alone = NgramExperiment(**{**both.model_dump(), "seeds": (1,)})
    run, other = (train(each, Store(tmp_path)) for each in (both, alone))
    rows = measured("chen/settings", run)
    assert [(row.setting, row.seed) for row in rows] == [("all at once", 0), ("all at once", 1)]
    assert {row.seconds for row in rows} == {round(run.folder.manifest.seconds, 1)}
    assert rows[1].a == float(other.state(1)["a"]) != rows[0].a
    assert rows[1].changes["descent"]["stages"] == "CWa"
    assert rows[1].predicted == {"paper": (1, 2), "heads": (1, 2)}
    assert set(rows[1].slopes_of_a) == {"10", "30", "100", "300"}
    chains = chains_of(alone, 1, "validation")
    apart = compare(alone, model_answers(alone, other.state(1), chains), chains)
    assert (rows[1].distance, rows[1].loss.model) == (apart.distance, apart.seen.model)


@pytest.mark.usefixtures("tiny")
def test_every_seed_has_its_growth_and_its_choice(tmp_path: Path) -> None:
    short = {"epochs": (50, 50, 100), "chains": 300, "validation_chains": 50}
    run = train(NgramExperiment(descent=short, seeds=(3, 5)), tmp_path)
    rows = measured("chen/growth", run)
    assert [row.seed for row in rows] == [3, 5]
    found = growth_explained(run, 5)
    assert rows[1].slopes == {name: found.slope(name) for name in found.courses}
    assert rows[1].epochs[-1] == 100
    for name, course in found.courses.items():
        assert rows[1].courses[name] == pytest.approx(course.tolist(), abs=1e-5)
    first = {name: NgramExperiment(**first_stage(TINY[name]), seeds=(0, 1)) for name in TINY}
    experiment = first["the paper's"]
    chosen = measured("chen/choices", train(experiment, tmp_path))
    assert [(row.setting, row.seed) for row in chosen] == [("the paper's", 0), ("the paper's", 1)]
    for row in chosen:
        assert (row.predicted, row.chosen_lags) == (predicted(experiment), (1, 2))
        assert row.share > 0.99
