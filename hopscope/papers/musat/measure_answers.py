"""Measures how language models answer: the rows of figure 2."""

from dataclasses import asdict
from math import isfinite

from hopscope.configs import LlmBench
from hopscope.llm.results import results
from hopscope.papers.musat.rows import AnswerRow
from hopscope.store import RunFolder


def answer_rows(folder: RunFolder) -> list[AnswerRow]:
    """A row per kind of question that a model was asked."""
    bench = folder.recipe_as(LlmBench)
    return [
        AnswerRow(
            run=folder.name,
            model=bench.model,
            protocol=bench.asking.protocol,
            precision=bench.asking.precision,
            seconds=folder.manifest.seconds,
            **{**asdict(each), "tries": each.tries if isfinite(each.tries) else None},
        )
        for each in results(folder)
    ]
