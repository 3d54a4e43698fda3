"""Rows of what is computed or asked, and what rows of Musat may lack and add up to."""

import json
from collections.abc import Sequence
from pathlib import Path

import musat_rows
import pytest

from hopscope.configs import Asking, LlmBench, Prompts
from hopscope.errors import ResultsUnreadable
from hopscope.llm.results import results
from hopscope.llm.work import ask
from hopscope.papers.musat.measure_answers import answer_rows
from hopscope.papers.musat.measure_depth import PLANTED, depth_rows
from hopscope.papers.musat.rows import (
    AnswerRow,
    DepthRow,
    Layers,
    LossRow,
    PlantedRow,
    Story,
    longest,
)
from hopscope.papers.row import read_row


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


def test_a_row_for_each_model_and_kind_of_question(tmp_path: Path) -> None:
    kinds = (Prompts(formulation="equations", hops=2, opening=True), Prompts(formulation="f4"))
    asking = Asking(protocol="greedy", template="raw")
    benches = [
        LlmBench(model=model, prompts=kinds, questions=30, asking=asking)
        for model in ("small", "large")
    ]
    folders = [ask(bench, Guesser, tmp_path) for bench in benches]
    rows = [row for folder in folders for row in answer_rows(folder)]
    assert [read_row((AnswerRow,), json.loads(row.to_json())) for row in rows] == rows
    assert [(row.model, row.kind) for row in rows] == [
        (model, kind)
        for model in ("small", "large")
        for kind in ("equations-d2-opened", "functions")
    ]
    assert [row.run for row in rows] == [folder.name for folder in folders for _ in kinds]
    for row, result in zip(rows, [each for f in folders for each in results(f)], strict=True):
        assert (row.protocol, row.precision, row.count) == ("greedy", "float32", 30)
        for name in ("hops", "accuracy", "interval", "best", "guessing", "first", "acceptance"):
            assert getattr(row, name) == getattr(result, name)
    assert 0 < rows[0].accuracy < 1
    assert rows[0].tries == results(folders[0])[0].tries
    assert rows[1].tries is None  # no sample was acceptable


def test_layers_are_counted_in_two_ways_and_proved_by_weights_written_by_hand() -> None:
    rows = depth_rows("smoke")
    assert [read_row((DepthRow, PlantedRow), json.loads(row.to_json())) for row in rows] == rows
    counted = [row for row in rows if isinstance(row, DepthRow)]
    assert [row.hops for row in counted] == list(range(1, 9))
    for row in counted:
        assert row.simulated == Layers(bidirectional=row.bidirectional, causal=row.causal)
        bound = row.theorem_1
        assert 3 ** (bound - 1) < 2 * row.hops <= 3**bound  # the least t ≥ log3(2D)
        assert bound <= row.bidirectional <= row.causal
    causal = {row.hops: row.causal for row in counted}
    planted = [row for row in rows if isinstance(row, PlantedRow)]
    assert tuple(row.planted for row in planted) == PLANTED
    for one in planted:
        assert (one.layers, one.heads) == (causal[one.planted], 1)
        assert 0 <= one.error < 1e-6


def test_a_model_counts_once_though_one_row_does_not_name_its_initial_weights() -> None:
    unnamed = musat_rows.loss_row(3, [0.1, 0.2, 0.6]).model_copy(update={"init": None})
    assert unnamed.loss == pytest.approx(0.3)  # the mean over hops
    longer = unnamed.model_copy(update={"init": "gpt2", "steps": unnamed.steps + 1})
    other = unnamed.model_copy(update={"init": "fan-in"})
    assert longest([unnamed, longer, other]) == [longer, other]


def test_only_what_earlier_tables_did_not_record_may_be_missing() -> None:
    kept = musat_rows.loss_row(3, [0.1]).model_dump(mode="json")
    del kept["init"]
    assert read_row((LossRow,), kept).model_dump()["init"] is None
    for name in ("final", "crossed", "course"):
        cut = {key: value for key, value in kept.items() if key != name}
        with pytest.raises(ResultsUnreadable, match=name):
            read_row((LossRow,), cut)
    story = {"steps": [0], "steps_per_epoch": None, "guess": 0.75, "losses": [[0.7]], "paths": []}
    assert Story.model_validate(story).learned_at is None
    assert Story.model_validate({**story, "learned_at": [4, None]}).learned_at == (4, None)
    asked = musat_rows.answer_row("small", "equations-d1").model_dump(mode="json")
    with pytest.raises(ResultsUnreadable, match="count"):  # half a question is none
        read_row((AnswerRow,), {**asked, "count": 30.5})
