"""Rows of Musat: what may be missing, and what they add up to."""

import musat_rows
import pytest

from hopscope.errors import ResultsUnreadable
from hopscope.papers.musat.rows import AnswerRow, LossRow, Story, longest
from hopscope.papers.row import read_row


def test_a_loss_is_the_mean_over_hops() -> None:
    assert musat_rows.loss_row(3, [0.1, 0.2, 0.6]).loss == pytest.approx(0.3)


def test_answers_that_were_opened_count_as_another_models() -> None:
    assert musat_rows.answer_row("small", "equations-d1").asked == "small"
    assert musat_rows.answer_row("small", "equations-d1-opened").asked == "small (opened)"


def test_what_was_not_recorded_in_earlier_tables_may_be_missing() -> None:
    kept = musat_rows.loss_row(3, [0.1]).model_dump(mode="json")
    del kept["init"]
    assert read_row((LossRow,), kept).model_dump()["init"] is None
    for name in ("final", "crossed", "course"):
        cut = {key: value for key, value in kept.items() if key != name}
        with pytest.raises(ResultsUnreadable, match=name):
            read_row((LossRow,), cut)


def test_stories_of_before_do_not_say_when_hops_were_learned() -> None:
    story = {"steps": [0], "steps_per_epoch": None, "guess": 0.75, "losses": [[0.7]], "paths": []}
    assert Story.model_validate(story).learned_at is None
    assert Story.model_validate({**story, "learned_at": [4, None]}).learned_at == (4, None)


def test_half_a_question_is_none() -> None:
    kept = musat_rows.answer_row("small", "equations-d1").model_dump(mode="json")
    with pytest.raises(ResultsUnreadable, match="count"):
        read_row((AnswerRow,), {**kept, "count": 30.5})


def test_a_model_counts_once_though_one_row_does_not_name_its_initial_weights() -> None:
    unnamed = musat_rows.loss_row(3, [0.1]).model_copy(update={"init": None})
    longer = unnamed.model_copy(update={"init": "gpt2", "steps": unnamed.steps + 1})
    other = unnamed.model_copy(update={"init": "fan-in"})
    assert longest([unnamed, longer, other]) == [longer, other]
