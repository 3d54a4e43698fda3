"""Pages of how the answer travels: their rows are those of the circuits that come with hopscope."""

from pathlib import Path

import pytest

import hopscope
from hopscope.report.account import account_rows

PAGES = Path(__file__).parents[1] / "docs" / "travels"


@pytest.mark.parametrize(
    ("page", "model"),
    [
        *((name, name) for name in ("figure-5", "three-heads")),
        *((f"transformer-{each}", f"transformer-{each}") for each in "abc"),
        ("transformer-d", "transformer-d-fan-in"),
    ],
)
def test_every_row_of_the_account_is_on_the_page(page: str, model: str) -> None:
    told = (PAGES / f"{page}.md").read_text()
    rows = account_rows(hopscope.load(f"gallery/{model}").circuit)
    assert rows
    assert [row for row in rows if f"| {' | '.join(row)} |" not in told] == []


def test_what_answers_leave_without_following_is_told() -> None:
    rows = account_rows(hopscope.load("gallery/transformer-b").circuit)
    assert ("5.0", "value 0 ← value 1", "x2: answers leave, and none follows", "·") in rows
