"""Rows of benchmarks that are finished."""

import json
from collections.abc import Sequence
from pathlib import Path

from hopscope.configs import Asking, LlmBench, Prompts
from hopscope.llm.results import results
from hopscope.llm.work import ask
from hopscope.papers.musat.measure_answers import answer_rows
from hopscope.papers.musat.rows import AnswerRow
from hopscope.papers.row import read_row
from hopscope.store import RunFolder


class Guesser:
    """Says the first value it reads, and of functions nothing at all."""

    name = "guesser"

    def complete(
        self,
        prompts: Sequence[str],
        temperature: float,
        seeds: Sequence[int],
        openings: Sequence[str] = (),
    ) -> list[str]:
        return ["" if "(" in each else each.splitlines()[0].split()[-1] for each in prompts]


def finished(root: Path, model: str) -> RunFolder:
    kinds = (Prompts(formulation="equations", hops=2, opening=True), Prompts(formulation="f4"))
    asking = Asking(protocol="greedy", template="raw")
    bench = LlmBench(model=model, prompts=kinds, questions=30, asking=asking)
    return ask(bench, Guesser, root)


def test_a_row_for_each_model_and_kind(tmp_path: Path) -> None:
    folders = [finished(tmp_path, model) for model in ("small", "large")]
    rows = [row for folder in folders for row in answer_rows(folder)]
    assert [read_row((AnswerRow,), json.loads(row.to_json())) for row in rows] == rows
    kinds = ["equations-d2-opened", "functions"]
    assert [(row.model, row.kind) for row in rows] == [
        (model, kind) for model in ("small", "large") for kind in kinds
    ]
    for row, result in zip(rows, [each for f in folders for each in results(f)], strict=True):
        assert (row.protocol, row.precision, row.count) == ("greedy", "float32", 30)
        assert row.interval == result.interval
        for name in ("hops", "accuracy", "best", "guessing", "first", "acceptance"):
            assert getattr(row, name) == getattr(result, name)
    assert [row.run for row in rows] == [f.name for f in folders for _ in kinds]
    assert 0 < rows[0].accuracy < 1
    assert rows[0].tries == results(folders[0])[0].tries
    assert rows[1].tries is None  # no sample was acceptable
