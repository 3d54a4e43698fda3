"""`hopscope depth`: bounds and schedules, in a terminal and as figures."""

from pathlib import Path

import pytest
from calling import Said
from PIL import Image

from hopscope.cli.main import run
from hopscope.errors import HopscopeError

BRANCHED = "a->b a->c b->d c->e d,e->f"
"""The schedule for one head brings b and d later than many heads do, and c, e and f as early."""


def test_bounds_and_schedules(said: Said) -> None:
    out = said("depth", "--hops", "5")
    assert "Theorem 1 (a lower bound)                3 layers" in out
    assert "exact, causal, last hop first            4 layers" in out
    for words, text in {
        "--hops 5": "x1 2, x2 3, x3 3, x4 4, x5 4",
        "--task conditional": "x 2, y 2, z 3",
        "--task khop": "x1 2, x2 3\n",
        "--hops 4 --single-head": "with one head, exact",
        "--hops 4 --single-head --json": '{"symbol": "x4", "layers": 4, "at_least": 4}',
        "--hops 5 --single-head --bidirectional": "to 4\nwith one head, at least the first of two",
        f"{BRANCHED} --single-head": "b 2 to 4, c 2, d 3 to 4, e 3, f 3\n",
        f"{BRANCHED} --single-head --json": '{"symbol": "b", "layers": 4, "at_least": 2}',
        "a->b b->c": "c 3",
    }.items():
        assert text in said("depth", *words.split()), words
    assert "find a position by its distance" in said("depth", "--task", "khop")
    assert "find a position by its distance" not in said("depth", "--task", "induction")
    lines = said("depth", "--table", "1..64").splitlines()
    assert len(lines) == 65
    assert lines[-1].split() == ["64", "5", "6", "8"]


def test_bounds_of_many_hops_come_at_once(said: Said) -> None:
    for hops in (101, 10**11):
        lines = said("depth", "--hops", str(hops)).splitlines()
        assert lines[0].split() == ["hops", str(hops)]
        assert lines[3].split()[-2:] == [str(hops.bit_length() + 1), "layers"]
        assert lines[-1] == f"the schedule is drawn for up to 100 hops, not for {hops:,} hops"
        with pytest.raises(HopscopeError, match="are too many for a figure; expected up to 100"):
            run(["depth", "--hops", str(hops), "--figure", "x.svg"])


def test_the_size_of_a_figure_is_chosen_by_flags(root: Path, said: Said) -> None:
    words = ("depth", "--hops", "2", "--figure", "x.png", "--width", "5.5", "--dpi", "100")
    assert "\nfigure: x.png\n" in said(*words)
    with Image.open(root / "x.png") as image:
        assert image.width == 550
