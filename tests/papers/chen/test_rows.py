"""Rows of Chen et al.: told apart by what they are of, and as strict as they were written."""

import chen_rows
import pytest

from hopscope.errors import ResultsUnreadable
from hopscope.papers.chen.rows import (
    ChoiceRow,
    CourseRow,
    GrowthRow,
    SeedRow,
    SettingRow,
    TransferRow,
)
from hopscope.papers.row import read_row

KINDS = (SeedRow, TransferRow, CourseRow, GrowthRow, ChoiceRow, SettingRow)


def test_a_row_is_read_as_what_it_says_it_is() -> None:
    rows = [*chen_rows.training(), chen_rows.growth_row(0), chen_rows.choice_row("alphabet 8", 0)]
    rows.append(chen_rows.setting_row("the paper's"))
    assert {type(row) for row in rows} == set(KINDS)
    for row in rows:
        assert read_row(KINDS, row.model_dump(mode="json", exclude_unset=True)) == row


def test_the_value_is_what_was_varied() -> None:
    assert chen_rows.transfer_row(0, "length", 400, 0.1).value == 400
    assert chen_rows.transfer_row(0, "alpha", 100, 0.5).value == 0.5


def test_a_word_where_a_number_belongs_is_refused() -> None:
    kept = chen_rows.seed_row(0).model_dump(mode="json")
    with pytest.raises(ResultsUnreadable, match="r2"):
        read_row(KINDS, {**kept, "r2": "0.99"})
