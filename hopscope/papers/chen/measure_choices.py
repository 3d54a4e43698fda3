"""Measures which set wins stage I over seeds, beside the sets that the rules name."""

from hopscope.ngram.evaluation import choice
from hopscope.ngram.run import NgramRun
from hopscope.papers.chen.measure_runs import predicted, seconds
from hopscope.papers.chen.rows import ChoiceRow
from hopscope.papers.chen.settings import choices
from hopscope.papers.table import Protocol
from hopscope.store import RunFolder


def choice_rows(folder: RunFolder, protocol: Protocol) -> list[ChoiceRow]:
    """A row for every seed of the setting that this run is of."""
    run = NgramRun(folder)
    seeds = len(run.recipe.seeds)
    names = {each.run_name(): name for name, each in choices(seeds, protocol).items()}
    rules = predicted(run.recipe)
    rows = []
    for seed in run.recipe.seeds:
        picked = choice(run.recipe.model, run.course(seed).at(-1))
        rows.append(
            ChoiceRow(
                what="choice",
                setting=names[folder.name],
                seed=seed,
                predicted=rules,
                chosen_lags=picked.lags,
                share=picked.share,
                seconds=seconds(run),
            )
        )
    return rows
