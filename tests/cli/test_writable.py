"""Figures go to files of a known format that can be written."""

from collections.abc import Callable
from pathlib import Path

import pytest

Say = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.foo", "ends in .svg, .pdf, .png, not x.foo"),
        ("x", "ends in .svg, .pdf, .png, not x"),
        ("folder.svg", "folder.svg is a folder"),
    ],
)
def test_a_figure_needs_a_file_of_a_known_format(
    root: Path, hopscope: Say, name: str, text: str
) -> None:
    (root / "folder.svg").mkdir()
    code, _, err = hopscope("depth", "--figure", name)
    assert code == 2
    assert text in err
    assert err.count("\n") == 1
