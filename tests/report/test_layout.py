"""Tables in a width: words stay whole, cells stay apart."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hopscope.report.layout import hanging, laid_out, wrapped

WORDS = st.lists(st.text("abc日", min_size=1, max_size=9), max_size=6).map(" ".join)


@given(WORDS, st.integers(1, 20))
def test_wrapping_keeps_all_words_and_their_order(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(cell_len(line) <= width or " " not in line for line in lines)
    for first, second in pairwise(lines):  # no word would have fitted above
        assert cell_len(f"{first} {second.split()[0]}") > width


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4), st.integers(10, 60))
def test_no_word_is_ever_cut(rows: list[tuple[str, ...]], width: int) -> None:
    lines = laid_out(["one", "two", "three"], rows, width)
    found = sorted(" ".join(lines).split())
    wanted = sorted(word for row in rows for cell in row for word in cell.split())
    blocks = not lines or not lines[0].startswith("one  ")
    if not blocks:
        assert found == sorted([*wanted, "one", "two", "three"])
        assert all(cell_len(line) <= width for line in lines)
    else:
        named = {"one:", "two:", "three:"}
        assert [word for word in found if word not in named] == wanted


def test_what_fits_stands_side_by_side() -> None:
    lines = laid_out(["run", "loss"], [["a", "0.5 0.25"], ["bcd", ""]], 80)
    assert lines == ["run  loss", "a    0.5 0.25", "bcd"]


def test_a_narrow_terminal_gets_a_block_for_each_row() -> None:
    row = ["retrieval-d2-l3h4-4e9b70a72b", "2,500", "", "0.010 0.012"]
    assert laid_out(["run", "step", "models", "loss of each hop"], [row], 40) == [
        "run: retrieval-d2-l3h4-4e9b70a72b",
        "  step: 2,500",
        "  loss of each hop: 0.010 0.012",
    ]


@given(WORDS, st.integers(10, 60))
def test_what_hangs_is_the_same_words_set_in(text: str, width: int) -> None:
    first, *rest = hanging(text, width)
    assert [*first.split(), *(word for line in rest for word in line.split())] == text.split()
    assert all(line.startswith("  ") and line[2:3].strip() for line in rest)
    assert all(cell_len(line) <= width or " " not in line.strip() for line in (first, *rest))


@pytest.mark.parametrize("rows", [[], [["x", "y"]]])
def test_colours_do_not_count(rows: list[list[str]]) -> None:
    plain = laid_out(["x", "b"], rows, 80)
    painted = laid_out(["x", "b"], rows, 80, {"x": "32"})
    assert [line.replace("\x1b[32m", "").replace("\x1b[0m", "") for line in painted] == plain
    assert "\x1b[32mx\x1b[0m" in painted[0]
