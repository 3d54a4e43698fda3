"""Measures how a grows in the last stage, and what of it the counts of matches explain."""

from hopscope.ngram.growth import growth_explained
from hopscope.ngram.run import NgramRun
from hopscope.papers.chen.measure_runs import seconds
from hopscope.papers.chen.rows import GrowthRow
from hopscope.store import RunFolder


def growth_rows(folder: RunFolder) -> list[GrowthRow]:
    """A row for every seed."""
    run = NgramRun(folder)
    return [growth_row(run, seed) for seed in run.recipe.seeds]


def growth_row(run: NgramRun, seed: int) -> GrowthRow:
    """The growth of a in the model of one seed."""
    found = growth_explained(run, seed)
    return GrowthRow(
        what="growth",
        seed=seed,
        one_over_gap=1 / found.gap,
        slopes={name: found.slope(name) for name in found.courses},
        epochs=tuple(found.epochs.tolist()),
        courses={
            name: tuple(round(float(a), 5) for a in course)
            for name, course in found.courses.items()
        },
        seconds=seconds(run),
    )
