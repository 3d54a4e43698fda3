"""Rows are checked when they are made and when they are read, and written as they were."""

import json
from typing import Any

import pytest
from pydantic import StrictFloat, StrictInt

from hopscope.errors import ResultsUnreadable
from hopscope.papers.row import Numbers, Record, Row, read_row


class Inner(Record):
    values: Numbers


class Loss(Row):
    loss: StrictFloat
    step: StrictInt | None = None
    inner: Inner | None = None


class Count(Row):
    count: StrictInt
    of: StrictInt


KINDS = (Loss, Count)


@pytest.mark.parametrize(
    "line",
    [
        '{"loss": 0.1}',
        '{"run": "a", "loss": 0.30000000000000004, "step": null, "inner": {"values": [1.0]}}',
        '{"count": 1, "of": 2}',
        '{"loss": Infinity}',
    ],
)
def test_a_row_comes_back_to_the_letter(line: str) -> None:
    assert read_row(KINDS, json.loads(line)).to_json() == line


def test_the_kind_is_told_by_the_fields() -> None:
    assert isinstance(read_row(KINDS, {"loss": 1.0}), Loss)
    assert isinstance(read_row(KINDS, {"count": 1, "of": 2}), Count)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"count": 1}, "'Count.of': Field required"),  # of two that lack one field, that which fits
        ({"count": 1, "of": 2.5}, "'Count.of': Input should be a valid integer"),
        ({"loss": True}, "'Loss.loss': Input should be a valid number"),
        ({"loss": "1"}, "'Loss.loss': Input should be a valid number"),
        ({"loss": 1.0, "lost": 1}, "'Loss.lost': Extra inputs are not permitted"),
        ({"loss": 1.0, "\x1b[2J": 1}, "'Loss.\\x1b[2J': Extra inputs are not permitted"),
        ({"loss": 1.0, "inner": {"values": ["x"]}}, "'Inner.values.0': Input should be a valid"),
    ],
)
def test_what_is_wrong_is_one_line(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ResultsUnreadable) as caught:
        read_row(KINDS, values)
    assert str(caught.value).startswith(text)
    assert str(caught.value).isprintable()


def test_a_row_is_checked_when_it_is_made() -> None:
    with pytest.raises(ResultsUnreadable, match="'Loss.loss': Input should be a valid number"):
        Loss(loss="0.1")  # type: ignore[arg-type]
