"""Measure the answers of language models: the rows of figure 2."""

from hopscope.lm.results import BenchRun, result_rows
from hopscope.papers.musat.rows import AnswerRow


def answer_rows(run: BenchRun) -> list[AnswerRow]:
    """A row for each kind of question that a model was asked."""
    return [AnswerRow(**row, parameters=run.parameters) for row in result_rows(run)]
