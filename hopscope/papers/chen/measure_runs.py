"""Measure runs of the n-gram experiment: the results of their stages, and of other settings."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Literal

import numpy as np
from jaxtyping import Int

from hopscope.configs import Descent, NgramExperiment
from hopscope.ngram import information
from hopscope.ngram.evaluation import (
    ALPHAS,
    LENGTHS,
    Choice,
    Moment,
    approach,
    choice,
    transfer,
    validated,
)
from hopscope.ngram.growth import gap, growth, growth_explained
from hopscope.ngram.parameters import Course, set_name, sets
from hopscope.ngram.run import NgramRun
from hopscope.ngram.stepper import record_epochs
from hopscope.ngram.trainer import chains_of
from hopscope.papers.chen.rows import (
    ChoiceRow,
    CourseRow,
    GrowthRow,
    Lags,
    MeanLosses,
    SeedRow,
    SettingRow,
    TransferRow,
)
from hopscope.papers.chen.settings import setting_of
from hopscope.papers.row import ResultRow

CHAINS = 1_000
"""Number of fresh chains of each other length and prior."""
MEASURED_TABLES = 300
"""Number of tables from the prior over which a rule's prediction is averaged."""
PAIRS = 2**20
"""The rule through initial heads is computed only up to this number of pairs of windows."""
SLOPES_AT = (10, 30, 100, 300, 1_000)
"""Epochs of the last stage at which the growth of a is measured, each up to its double."""
MOMENTS = 18
"""Number of epochs of each stage that are kept for a figure."""


def training_rows(run: NgramRun) -> list[ResultRow]:
    """Return for each seed the results of its stages, of other chains, and its course."""
    rows: list[ResultRow] = []
    for seed in run.recipe.seeds:
        moments = approach(run, seed)
        rows += [_stages(run, seed, moments), *_others(run, seed), _course(run, seed, moments)]
    return rows


def setting_rows(run: NgramRun) -> list[SettingRow]:
    """Return a row for every seed of the run's setting."""
    name, rules = setting_of(run.recipe), predicted(run.recipe)
    return [_setting(name, run, seed, rules) for seed in run.recipe.seeds]


def growth_rows(run: NgramRun) -> list[GrowthRow]:
    """Return how a grows in the model of each seed, trained and predicted by counts of matches."""
    return [_growth(run, seed) for seed in run.recipe.seeds]


def _growth(run: NgramRun, seed: int) -> GrowthRow:
    found = growth_explained(run, seed)
    return GrowthRow(
        what="growth",
        seed=seed,
        one_over_gap=1 / found.gap,
        slopes={name: found.slope(name) for name in found.courses},
        epochs=tuple(found.epochs.tolist()),
        courses={name: _rounded(course) for name, course in found.courses.items()},
        seconds=seconds(run),
    )


def choice_rows(run: NgramRun) -> list[ChoiceRow]:
    """Return which set won stage I for each seed of a setting, and the sets that rules predict."""
    name, rules, rows = setting_of(run.recipe), predicted(run.recipe), []
    for seed in run.recipe.seeds:
        picked = choice(run.recipe.model, run.course(seed).at(-1))
        rows.append(
            ChoiceRow(
                what="choice",
                setting=name,
                seed=seed,
                predicted=rules,
                chosen_lags=picked.lags,
                share=picked.share,
                seconds=seconds(run),
            )
        )
    return rows


def _stages(run: NgramRun, seed: int, moments: Sequence[Moment]) -> SeedRow:
    experiment, course = run.recipe, run.course(seed)
    selected = _selected(experiment, course)
    last = course.at(-1)
    found = growth(course, _last_stage(experiment))
    return SeedRow(
        what="seed",
        seed=seed,
        parents=experiment.process.parents,
        chosen_lags=selected.lags,
        share_after_stage_1=selected.share,
        attention_before=choice(experiment.model, course.at(0)).weights,
        attention_after=choice(experiment.model, last).weights,
        a=found.end,
        slope_by_log_epoch=found.slope,
        r2=found.straightness,
        one_over_gap=1 / gap(experiment, last, chains_of(experiment, seed, "validation")),
        distance_begin=moments[0].distance,
        distance_end=moments[-1].distance,
        seconds=seconds(run),
    )


def _selected(experiment: NgramExperiment, course: Course) -> Choice:
    """Return the choice at the end of the first stage."""
    end = experiment.descent.plan()[0][1]
    return choice(experiment.model, course.at(int(np.searchsorted(course.epochs, end))))


def _last_stage(experiment: NgramExperiment) -> int:
    """Return the epoch after which the last stage begins."""
    return experiment.steps - experiment.descent.plan()[-1][1]


def _others(run: NgramRun, seed: int) -> Iterator[TransferRow]:
    """Yield rows of the trained model on chains of other lengths, and of other priors."""
    varied: list[Literal["length", "alpha"]] = ["length"] * len(LENGTHS)
    varied += ["alpha"] * len(ALPHAS)
    for name, (process, other) in zip(varied, transfer(run, seed, chains=CHAINS), strict=True):
        yield TransferRow(
            what="transfer",
            seed=seed,
            varied=name,
            length=process.length,
            alpha=process.alpha,
            distance=other.distance,
            matched=other.matched,
            loss=MeanLosses(**asdict(other.expected)),
        )


def _course(run: NgramRun, seed: int, moments: Sequence[Moment]) -> CourseRow:
    """Return the data of the figure of stages; distances to GIH only exist in the last stage."""
    experiment, course = run.recipe, run.course(seed)
    kept = _kept(experiment.descent, course)
    chosen, attention = choice(experiment.model, course.at(-1)), course.attention[kept]
    begin, number = _last_stage(experiment), experiment.seeds.index(seed)
    near = {begin + moment.epoch: round(moment.distance, 5) for moment in moments}
    return CourseRow(
        what="course",
        seed=seed,
        stages=tuple(experiment.descent.plan()),
        epochs=course.epochs[kept].tolist(),
        shares={
            set_name(heads): _rounded(shares)
            for heads, shares in zip(sets(experiment.model), course.shares[kept].T, strict=True)
        },
        attention={
            f"head {head + 1} to lag {lag}": _rounded(attention[:, head, lag - 1])
            for head, lag in zip(chosen.heads, chosen.lags, strict=True)
        },
        a=_rounded(course.a[kept]),
        train=_rounded(run.losses("train")[1][kept, number, 0]),
        validation=_rounded(run.losses("validation")[1][kept, number, 0]),
        distance=tuple(near.get(int(epoch)) for epoch in course.epochs[kept]),
    )


def _kept(descent: Descent, course: Course) -> Int[np.ndarray, "kept"]:
    """Return the indices of a few records, denser at each stage's beginning (as recorded)."""
    few = descent.replace(records=min(MOMENTS, descent.records))
    kept: np.ndarray = np.unique(np.searchsorted(course.epochs, record_epochs(few)))
    return kept


def _rounded(values: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(value), 5) for value in values)


def _setting(name: str, run: NgramRun, seed: int, rules: dict[str, Lags]) -> SettingRow:
    """Return the results of a seed in a setting, and the sets that rules predict."""
    experiment = run.recipe
    parameters, found = validated(run, seed)
    picked = choice(experiment.model, parameters)
    return SettingRow(
        what="setting",
        setting=name,
        seed=seed,
        changes=experiment.model_dump(mode="json", exclude_defaults=True, exclude={"seeds"}),
        seconds=seconds(run),
        parents=experiment.process.parents,
        predicted=rules,
        chosen_lags=picked.lags,
        share=picked.share,
        attention=picked.weights,
        a=float(parameters.a),
        slopes_of_a=slopes_of_a(run, seed),
        loss=MeanLosses(**asdict(found.seen)),
        expected=MeanLosses(**asdict(found.expected)),
        distance=found.distance,
        matched=found.matched,
    )


def seconds(run: NgramRun) -> float:
    """Return the seconds of the training of all seeds of a run."""
    return round(run.folder.manifest.seconds, 1)


def predicted(experiment: NgramExperiment) -> dict[str, Lags]:
    """Return the predicted winner of stage I, by the paper's rule and through initial heads."""
    arguments = (experiment.process, experiment.model, MEASURED_TABLES)
    found = {"paper": information.winner(information.exact(*arguments))}
    if experiment.process.alphabet ** (2 * experiment.model.window) <= PAIRS:
        found["heads"] = information.winner(information.through_heads(*arguments))
    return found


def slopes_of_a(run: NgramRun, seed: int) -> dict[str, float]:
    """Return the growth of a per factor e of epochs, from each epoch in SLOPES_AT to its double."""
    experiment, course = run.recipe, run.course(seed)
    begin = _last_stage(experiment)
    since, a = course.epochs - begin, course.a
    at = {epoch: float(np.interp(epoch, since, a)) for e in SLOPES_AT for epoch in (e, 2 * e)}
    return {
        str(epoch): (at[2 * epoch] - at[epoch]) / float(np.log(2))
        for epoch in SLOPES_AT
        if 2 * epoch <= experiment.steps - begin
    }
