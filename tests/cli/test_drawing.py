"""Figures go to files of a known format that can be written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

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


def test_the_look_is_chosen_by_flags_and_the_caption_is_printed(root: Path, hopscope: Say) -> None:
    words = ("depth", "--hops", "2", "--figure", "x.png", "--style", "dark")
    code, out, err = hopscope(*words, "--columns", "1", "--dpi", "100")
    assert (code, err) == (0, "")
    assert out.splitlines()[-2] == "figure: x.png"
    assert out.splitlines()[-1].startswith("Symbols (above) and roles (below)")
    with Image.open(root / "x.png") as image:
        assert image.width == 335
    for flags, told in (
        (("--dpi", "9"), "--dpi is 9; expected 50 to 1200"),
        (("--style", "page"), "follows its reader's light or dark, which only .svg can"),
    ):
        code, _, err = hopscope("depth", "--hops", "2", "--figure", "y.png", *flags)
        assert code == 2
        assert told in err
    assert not (root / "y.png").exists()
